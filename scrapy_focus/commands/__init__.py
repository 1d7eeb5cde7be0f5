"""Commands that the package adds to ``scrapy``. Each start of ``scrapy`` imports all of them: heavy imports are in
``run``.
"""
