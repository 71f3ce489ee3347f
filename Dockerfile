# One image of all programs: ripple, ripple-worker, ripple-coordinator, ripple-gateway.
#
#   docker build --tag ripple .
#
# The Python that the tests run with; PYTHON=3.13-slim-bookworm for another one.
ARG PYTHON=3.11-slim-bookworm

FROM python:${PYTHON} AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc g++ libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
# Dependencies come first, so that a change of the source does not fetch them again. Two builds of one
# commit have the same packages: `make lock` writes their versions and hashes.
COPY deploy/docker/requirements.lock deploy/docker/
RUN python -m venv /opt/ripple \
    && /opt/ripple/bin/pip install --require-hashes --requirement deploy/docker/requirements.lock
COPY pyproject.toml setup.py README.md LICENSE ./
COPY ripple ripple
COPY coordinator coordinator
COPY worker worker
RUN python -m pip wheel --no-deps --wheel-dir /wheels . \
    && /opt/ripple/bin/pip install --no-deps /wheels/*.whl \
    && /opt/ripple/bin/pip check \
    && /opt/ripple/bin/pip uninstall --yes pip setuptools

FROM python:${PYTHON}
# ripple cert needs openssl, which comes with ca-certificates.
RUN openssl version \
    && groupadd --gid 10001 ripple \
    && useradd --uid 10001 --gid ripple --no-create-home --home-dir /var/lib/ripple --shell /usr/sbin/nologin ripple \
    && install --directory --owner ripple --group ripple --mode 0750 \
        /var/lib/ripple /var/lib/ripple/checkpoints /etc/ripple /etc/ripple/tls
COPY --from=build /opt/ripple /opt/ripple
COPY deploy/docker/healthy.py /opt/ripple/healthy.py
COPY examples /opt/ripple/examples
ENV PATH=/opt/ripple/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /var/lib/ripple
# Worker: probes, data of its first process, metrics. Coordinator: gRPC, probes, metrics, dashboard.
# Gateway: Arrow Flight, probes.
EXPOSE 9100 9101 9102 9200 9201 9202 9203 9300 9301
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
    CMD ["python", "-I", "-S", "/opt/ripple/healthy.py"]
STOPSIGNAL SIGTERM
CMD ["ripple", "--help"]
