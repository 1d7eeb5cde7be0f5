"""Synthetic sites after the profiles of the eighteen sites of the SB-CLASSIFIER paper."""
