# Two commands: `make demo` crawls a site that it serves itself, `make test` passes the tests; `make demo-topic` looks for a
# topic on many hosts, `make demo-structured` for pages that describe recipes, `make demo-important` for the most important pages of a web, `make demo-news` watches a news site for a day in a minute, `make soak KILLS=1000 SEED=1` kills crawls. They make their own environment in .venv. pip is the
# caller's (--python), so that Debian's python3-venv is not needed.
PYTHON ?= python3
VENV ?= .venv
PY = $(VENV)/bin/python
KILLS ?= 100
SEED ?= 0
PIP = $(PYTHON) -m pip --python $(PY) --disable-pip-version-check install --quiet

.PHONY: demo demo-topic demo-important demo-structured demo-news test test-slow soak fuzz docs notebooks clean

demo: $(VENV)/installed
	$(VENV)/bin/focus demo --out demo-output

demo-topic: $(VENV)/installed-topic
	$(PY) example_project/topic_demo.py

demo-important: $(VENV)/installed
	$(PY) example_project/important_demo.py

demo-structured: $(VENV)/installed-structured
	$(PY) example_project/structured_demo.py

demo-news: $(VENV)/installed
	$(PY) example_project/news_demo.py

# Where Python is told to keep no bytecode, each of the hundreds of processes that tests start compiles the whole
# package.
unexport PYTHONDONTWRITEBYTECODE

# One more than there are cores, as many tests wait for servers and processes.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(os.cpu_count() + 1)')
# Thousands of tests crawl real servers, and a machine may stand still at any moment: those that failed may try once
# more, when nothing else runs. Each is told with its traceback, and is to be mended; AGAIN=false lets none try again.
# Status 1: all tests ran, and some failed.
AGAIN ?= test $$? -eq 1 && $(PY) -m pytest -q --last-failed --last-failed-no-failures none
# pytest rewrites and compiles the assertions of 350 files. Done once, beside mypy, no worker has to.
COMPILE = $(PY) -m pytest --collect-only -qq -m 'not slow and not alone' > /dev/null
test: $(VENV)/installed-test
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(COMPILE) & $(PY) -m mypy
	$(VENV)/bin/lint-imports
	$(PY) -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m 'not slow and not alone' \
		|| { $(AGAIN) -m 'not slow and not alone'; }
	$(PY) -m pytest -q -m 'alone and not slow' || { $(AGAIN) -m 'alone and not slow'; }

# What `make test` leaves out, and all examples of Hypothesis.
test-slow: $(VENV)/installed-test
	FOCUS_TEST_EXAMPLES=full $(PY) -m pytest -q -m 'slow or hypothesis'

soak: $(VENV)/installed-test
	$(PY) tests/scrapy/soak.py --kills $(KILLS) --seed $(SEED)

# Half a minute of it is in `make test`; this takes as many seconds of CPU as SECONDS says.
SECONDS ?= 3600
fuzz: $(VENV)/installed-test
	-$(PIP) atheris
	$(PY) tests/hostile/fuzz.py --seconds $(SECONDS)

docs: $(VENV)/installed-test
	$(PY) -m sphinx -W -b html docs docs/_build/html

# Run the notebooks of the documentation, and save them with their outputs.
notebooks: $(VENV)/installed-test
	$(PY) docs/execute_notebooks.py

$(VENV)/bin/python:
	$(PYTHON) -m venv --without-pip $(VENV)

$(VENV)/installed: setup.cfg pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable .
	touch $@

$(VENV)/installed-topic $(VENV)/installed-structured: $(VENV)/installed-%: setup.cfg pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable '.[$*]'
	touch $@ $(VENV)/installed

$(VENV)/installed-test: setup.cfg pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable '.[test,dev,docs]'
	touch $@ $(VENV)/installed

clean:
	rm -rf $(VENV) build demo-output docs/_build *.egg-info
