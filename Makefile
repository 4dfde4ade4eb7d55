# Harvest: install, test and show it, inside this clone. `make help` lists the targets.
#
# Everything goes into .venv; nothing outside the clone is touched, but for missing system libraries, which apt-get
# installs where it is there and may (root, or sudo). A stamp keeps a second run from installing anything again.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: install python check test fuzz servers demo bench lock lint clean help

BIN := .venv/bin
STAMP := .venv/installed
# Kafka and OpenSearch, for the tests that want the real ones (tests/servers).
JARS := .venv/servers/stamp
# The S3 server of the tests, built from its Go module (tests/servers/versitygw.py).
OBJECTS := .venv/servers/versitygw/stamp
# Debian's nginx, which gives OpenSearch TLS and a login (tests/servers/nginx.py).
PROXY := .venv/servers/nginx.stamp
# FTP servers, from Debian and from the package index (tests/servers/ftp.py).
FTP := .venv/servers/ftp.stamp
# Debian's servers of Gopher and news (tests/servers/debian_servers.py).
GOPHERS := .venv/servers/debian_servers.stamp
# Debian's Chromium, for the tests of the search page (tests/sinks/gateway/browser).
BROWSER := .venv/browser
# Programs that check the image and the chart (tests/deploy).
TOOLS := .venv/tools/installed
# agrep and glimpse, which the query language is compared with.
GLIMPSE := .venv/tools/glimpse/installed
# Processes for the tests: three, whatever the machine, so that limits on memory and time mean the same everywhere. Many tests wait
# for servers, so that three keep two cores busy.
WORKERS := 3
# Where distributions have their Python, whatever PATH begins with.
USUAL := /usr/bin/python3
ARGS :=
# What `make check` runs: the contract, the decisions, and the rules of the house.
PURE := tests/schemas tests/processors tests/house

install: $(STAMP)  ## install the program into .venv (.venv/bin/harvest), and what it needs

python:  ## say which Python install takes: the first that was built with optimization (PYTHON=... to take another)
	@eval "$$pythons"; find_python

check: lint  ## check style and types, then run the pure tests, which need no server: a minute or two
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not servers and not slow" --hypothesis-profile quick $(PURE) $(ARGS)

test: lint $(JARS) $(OBJECTS) $(PROXY) $(FTP) $(GOPHERS) $(TOOLS) $(GLIMPSE) $(BROWSER)  ## check style and types, then run every test (ARGS="..." is handed to pytest)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

fuzz: $(STAMP)  ## hunt for input that breaks a parser (ARGS="seconds=600 target=zip")
	@$(BIN)/python -m tests.fuzz $(ARGS)

servers: $(JARS)  ## start a real Kafka and a real OpenSearch, say where they are; Ctrl-C stops them
	@$(BIN)/python -m tests.servers

demo: $(STAMP)  ## gather real files, an archive corpus and a small web site, then search them
	@$(BIN)/python -m tests.demo

bench: $(JARS)  ## measure the throughput against plain programs doing the same
	@$(BIN)/python -m tests.bench $(ARGS)

lint: $(STAMP)  ## ruff (rules and format) and mypy (strict)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

lock: $(STAMP)  ## write the locks from pyproject.toml, with hashes (ARGS=--upgrade takes the newest versions)
	@test -x .venv/lock/bin/uv || { $(BIN)/python -m venv .venv/lock && .venv/lock/bin/python -m pip install --quiet 'uv>=0.9,<1'; }
	@.venv/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --extra dev --generate-hashes \
	  --no-emit-index-url --custom-compile-command 'make lock' --output-file requirements.lock $(ARGS) pyproject.toml
	@.venv/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --constraint requirements.lock --generate-hashes \
	  --no-emit-index-url --custom-compile-command 'make lock' --output-file docker/requirements.lock pyproject.toml docker/build.in

clean:  ## remove what install, tests and tools have made (not harvest-data)
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build harvest.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Installs system packages, if that may be done; the caller looks again whether they are there.
define apt
apt_install() {
  if ! command -v apt-get >/dev/null; then return; fi
  if [ "$$(id -u)" = 0 ]; then as=
  elif sudo -n true 2>/dev/null; then as="sudo -n"
  elif [ -t 0 ] && command -v sudo >/dev/null; then as=sudo
  else return 0
  fi
  echo "installing $$* with apt-get" >&2
  $$as apt-get -qq update >&2 && $$as env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$$@" >&2 || true
}
endef
export apt

# Which Python: the one that PYTHON names; else the first that was built with profile-guided optimization, as distributions build
# theirs and version managers do not unless they are told to (`make bench ARGS=objects` tells the difference); else the first.
# One without ensurepip cannot make .venv: it is only taken where there is no other, and gets its venv from apt-get.
define pythons
judge='
import sys, sysconfig
from importlib.util import find_spec
if sys.version_info < (3, 11):
    sys.exit(1)
# Debian does not say how it builds its own.
optimized = sys.base_prefix == "/usr" or "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
print("optimized" if optimized and find_spec("ensurepip") else "plain")'
find_python() {
  first=
  for python in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11 $(USUAL)); do
    built=$$("$$python" -c "$$judge" 2>/dev/null) || continue
    if [ -n "$(PYTHON)" ] || [ "$$built" = optimized ]; then echo "$$python"; return; fi
    first=$${first:-$$python}
  done
  echo "$$first"
}
endef
export pythons

# The libraries come first: a Python without venv cannot make .venv. What is missing is found by trying, not by asking
# the packager, so that libraries built by hand count. $$1 is the Python, which may still be missing itself.
define prepare
set -eu
eval "$$apt"
eval "$$pythons"
missing() {
  python=$$(find_python)
  if [ -z "$$python" ]; then echo "python3 python3-venv libmagic1 libarchive13"; return; fi
  "$$python" - <<'END'
from ctypes import CDLL
from ctypes.util import find_library
from importlib.util import find_spec

def loads(*names):
    for name in filter(None, names):
        try:
            CDLL(name)
        except OSError:
            continue
        return True
    return False

wanted = {
    "python3-venv": bool(find_spec("ensurepip") and find_spec("venv")),
    "libmagic1": loads("libmagic.so.1", find_library("magic")),
    "libarchive13": loads("libarchive.so.13", find_library("archive")),
}
print(*[package for package, there in wanted.items() if not there])
END
}
packages=$$(missing)
if [ -n "$$packages" ]; then apt_install $$packages; packages=$$(missing); fi
if [ -n "$$packages" ]; then
  echo "missing system packages: $$packages (Debian names; Python must be 3.11 or newer): install them, then run make again" >&2
  exit 1
fi
python=$$(find_python)
test -x $(BIN)/python && $(BIN)/python -m pip --version >/dev/null 2>&1 || { rm -rf .venv; "$$python" -m venv .venv; }
echo "installing Harvest into .venv, with $$($(BIN)/python -c 'import sys; print(sys.base_prefix, *sys.version.split()[:1])')" >&2
$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
# The build tool came with the lock: nothing more is downloaded. It warns of every editable install; this one is meant.
PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
touch $(STAMP)
endef
export prepare

$(STAMP): requirements.lock pyproject.toml
	@eval "$$prepare"

define servers
set -eu
eval "$$apt"
packages=$$($(BIN)/python -m tests.servers needs)
if [ -n "$$packages" ]; then apt_install $$packages; fi
$(BIN)/python -m tests.servers install
touch $(JARS)
endef
export servers

$(JARS): $(STAMP) tests/servers/kafka.jars tests/servers/opensearch.jars tests/servers/tika.jars
	@eval "$$servers"

$(OBJECTS): $(STAMP) tests/servers/go.lock tests/servers/versitygw.mod tests/servers/versitygw.sum
	@$(BIN)/python -m tests.servers.versitygw
	@touch $(OBJECTS)

$(PROXY): $(STAMP)
	@$(BIN)/python -m tests.servers.nginx
	@touch $(PROXY)

$(FTP): $(STAMP) tests/servers/pyftpdlib.lock tests/servers/ftp.py
	@rm -rf .venv/servers/ftp
	@$(BIN)/python -m tests.servers.ftp
	@touch $(FTP)

$(GOPHERS): $(STAMP) tests/servers/debian_servers.py
	@$(BIN)/python -m tests.servers.debian_servers
	@touch $(GOPHERS)

define browser
set -eu
eval "$$apt"
package=$$($(BIN)/python -m tests.sinks.gateway.browser.chromium)
if [ -n "$$package" ]; then apt_install $$package; package=$$($(BIN)/python -m tests.sinks.gateway.browser.chromium); fi
if [ -n "$$package" ]; then
  echo "missing system package: $$package (Debian name): the tests in the browser will fail without it" >&2
else
  touch $(BROWSER)
fi
endef
export browser

$(BROWSER): $(STAMP)
	@eval "$$browser"

$(TOOLS): $(STAMP) tests/deploy/tools.lock tests/deploy/tools.py
	@$(BIN)/python -m tests.deploy.tools
	@touch $(TOOLS)

# New tools remove the old folder, and Glimpse with it.
$(GLIMPSE): $(TOOLS) tests/deploy/glimpse.py
	@$(BIN)/python -m tests.deploy.glimpse
	@touch $(GLIMPSE)
