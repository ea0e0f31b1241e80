# The image of compose.yaml: this package with the tested versions, a compiler, a laboratory in /lab. No GPU.
FROM python:3.11-slim
RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap g++ git && rm -rf /var/lib/apt/lists/*
WORKDIR /lab
COPY . .
RUN pip install --no-cache-dir -c constraints.txt . psycopg2-binary \
    && useradd --create-home lab \
    && mkdir -p .cache champions data mlruns reports /artifacts \
    && chown -R lab .cache champions data mlruns reports /artifacts
USER lab
ENV KERNEL_SCIENTIST_ROOT=/lab PREFECT_HOME=/home/lab/.prefect
