# docker build -t spotsigs . && docker run --rm -v "$PWD:/data" -w /data spotsigs dedup crawl/ --out kept/
FROM python:3.12-slim
ENV NUMBA_CACHE_DIR=/opt/spotsigs/kernels
COPY pyproject.toml README.md LICENSE constraints.txt /opt/spotsigs/source/
COPY spotsigs /opt/spotsigs/source/spotsigs
RUN pip install --no-cache-dir -c /opt/spotsigs/source/constraints.txt '/opt/spotsigs/source[warc,cloud,dask]'
RUN python -m spotsigs.compile && chmod -R a+rwX /opt/spotsigs/kernels
ENTRYPOINT ["spotsigs"]
