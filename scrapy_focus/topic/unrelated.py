"""Texts on many different things: how similar a sentence is to texts that have nothing to do with it."""

from __future__ import annotations

#: Short texts as links and titles have them, about a hundred different things.
UNRELATED = (
    "Home", "Contact us", "About the museum", "Annual report", "Terms of use", "Opening hours", "Press release",
    "Sign in", "Search results", "Privacy policy", "Download the form", "Frequently asked questions", "Next page",
    "Latest news", "Site map", "Job vacancies", "Members of the board", "Photo gallery", "Newsletter archive",
    "How to find us", "Apple pie with cinnamon", "Bus timetable", "Second World War", "Football results",
    "Mountain hiking trails", "Oak tree", "Heart disease", "Stock exchange prices", "Queen Victoria", "Solar panels",
    "Guitar lessons", "Roman Empire", "Blue whale", "Programming in Python", "Wedding photographer", "River Danube",
    "Quantum mechanics", "Income tax return", "Primary school", "Chocolate factory", "Chess opening",
    "Earthquake in Chile", "Wool sweater", "Parliament elections", "Jazz festival", "Diabetes treatment",
    "Used cars for sale", "Medieval castle", "Weather forecast", "Steel production", "Buddhist temple",
    "Court of appeal", "Potato soup", "Space telescope", "Fire department", "Italian grammar", "Housing prices",
    "Olympic games", "Bicycle repair", "Copyright law", "Coral reef", "Shakespeare's plays", "Railway station",
    "Insurance claim", "Volcano", "Bread and cheese", "Human rights", "Electric motor", "Kitchen furniture",
    "Marie Curie", "Wheat harvest", "Film director", "Tennis racket", "Water supply", "Linear algebra",
    "Nurse training", "Desert plants", "Newspaper editor", "Airline tickets", "Bank account", "Dog training",
    "Gold mining", "Religious education", "Cotton shirt", "Population census", "Oil painting", "Traffic accident",
    "Vaccination", "Novel about love", "Bridge construction", "Tropical fish", "Pension fund", "Ice hockey",
    "Nuclear power plant", "Rose garden", "Mobile phone", "University library", "Hotel in Paris", "Trade union",
    "Saturn and its moons",
)  # fmt: skip
#: Words of a request that say nothing of its subject.
ASKING = frozenset(
    """
    a about all and any anything are article articles at by data dataset datasets document documents everything file
    files find for from give i in information is it looking me of on or other page pages please show site sites some
    text texts that the things to want web website websites what which with
    alle als am an auf aus bei das dem den der des die ein eine einer einem einen für im ist mit oder seite seiten über
    und von zu zum zur
    au aux ce ces de des du en et la le les ou par pour sur tout toutes tous un une
    al con da dal del della delle di e el gli i il las los nel o para per por su sulla y
    het een van voor op
    do na o od pro s v z ze
    dla i oraz w
    """.split()
)
