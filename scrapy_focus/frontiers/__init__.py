"""Where links wait. ``base`` says what every frontier promises; ``memory`` keeps all of it in this process."""
