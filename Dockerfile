# The image that grades a class; docs/containers.md says how to build and run it.
# It holds the solutions and the hidden checks: give it to no student.
FROM python:3.12-slim-bookworm AS build
COPY . /src
RUN python -m venv /opt/grade
ENV PATH=/opt/grade/bin:$PATH
# First from the index of the CPU builds: the usual one would add gigabytes for GPUs.
RUN pip install --no-cache-dir torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu
RUN pip install --no-cache-dir -c /src/constraints.txt "/src[instructor,cluster]"

FROM python:3.12-slim-bookworm
COPY --from=build /opt/grade /opt/grade
# Any user may run it, on a root file system that nobody can write: see `docker run` in the guide.
ENV PATH=/opt/grade/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1
USER 1000:1000
WORKDIR /work
ENTRYPOINT ["grade"]
CMD ["--help"]
