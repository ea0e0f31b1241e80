# The image of compose.yaml: this package with the tested versions, a compiler, a laboratory in /lab. No GPU.
FROM python:3.11-slim
RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap g++ git && rm -rf /var/lib/apt/lists/*
WORKDIR /lab
# Dependencies have a layer of their own: a change of the code does not install them again.
COPY pyproject.toml constraints.txt ./
RUN python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" \
        > /tmp/dependencies \
    && pip install --no-cache-dir -c constraints.txt -r /tmp/dependencies psycopg2-binary
COPY . .
RUN pip install --no-cache-dir --no-deps --editable . \
    && useradd --create-home lab \
    && mkdir -p .cache champions data/replies mlruns reports /artifacts \
    && chown -R lab .cache champions data mlruns reports /artifacts
USER lab
ENV KERNEL_SCIENTIST_ROOT=/lab PREFECT_HOME=/home/lab/.prefect
