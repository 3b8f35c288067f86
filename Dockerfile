# All of fu in one image, from the lock file: docs/container.md.
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE}
# For a CPU-only PyTorch: where pip finds one.
ARG PIP_ARGS=""
# For the provenance of what is made: there is no git in the image.
ARG COMMIT=""

RUN apt-get update \
 && apt-get install --yes --no-install-recommends make \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /fu
COPY envs/lock.txt envs/hashes.txt envs/
RUN python3 -m venv .venv \
 && .venv/bin/python -m pip install --quiet --no-cache-dir --no-deps --require-hashes -r envs/hashes.txt \
 && .venv/bin/python -m pip install --quiet --no-cache-dir ${PIP_ARGS} -r envs/lock.txt
COPY . .
RUN .venv/bin/python -m pip install --quiet --no-cache-dir --no-build-isolation --no-deps --editable . \
 && .venv/bin/python -m compileall -q fu \
 && touch .venv/installed \
 && mkdir -p data results .snakemake \
 && chmod 1777 data results .snakemake

# Any user may run it (`docker run --user`), with no home and no name here.
ENV HOME=/tmp LOGNAME=fu FU_COMMIT=${COMMIT:+"{\"commit\": \"${COMMIT}\", \"clean\": null}"}
USER 1000:1000
ENTRYPOINT ["make"]
CMD ["reproduce"]
