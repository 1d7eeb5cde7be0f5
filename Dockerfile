# The command "focus" with a browser. What it finds goes to the volume /data:
#   docker build --tag scrapy-focus .
#   docker run --init --rm --volume "$PWD:/data" --user "$(id -u):$(id -g)" scrapy-focus files https://example.org/
FROM python:3.11-slim

COPY . /source
RUN sh /source/docker/build.sh \
    && rm -rf /source /var/lib/apt/lists/* \
    && useradd --create-home focus \
    && install --directory --owner=focus --group=focus /data

USER focus
# Any user of --user can write here; Chromium and tldextract keep files in it.
ENV HOME=/tmp
VOLUME /data
WORKDIR /data
ENTRYPOINT ["focus"]
