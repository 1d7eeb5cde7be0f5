"""Goals turn outcomes into rewards: for items, files of wanted types, pages on a topic."""
