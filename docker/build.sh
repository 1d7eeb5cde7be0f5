#!/bin/sh
# Install Chromium and this package with its extras, as root on Debian: the build step of the Dockerfile.
# PYTHON names the Python to install it for, such as that of a virtual environment.
set -eu

source=$(cd "$(dirname "$0")/.." && pwd)

apt-get update
apt-get install --yes --no-install-recommends chromium fonts-liberation
"${PYTHON:-python}" -m pip install --no-cache-dir --disable-pip-version-check "$source[playwright,structured,topic]"
