# the CPU build of torch: a tenth of the size
torch=$(sed -n 's/^torch==\([0-9.]*\).*/\1/p' constraints.txt | head -n 1)
"$python" -m pip install -q "torch${torch:+==$torch}" \
    --index-url https://download.pytorch.org/whl/cpu
