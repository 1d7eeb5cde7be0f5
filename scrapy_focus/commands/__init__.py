"""Commands that the package adds to ``scrapy``, which imports all of them at each start: heavy imports are local."""
