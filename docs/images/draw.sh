#!/usr/bin/env bash
# Draw the pictures of docs/memory.md. Run in the repository's root; needs chromium for the page.
set -euo pipefail
layrubnet=.venv/bin/layrubnet
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for net in ResNet-50 VGG-16; do
    .venv/bin/python examples/resnet/generate.py "$net" >"$work/$net.prototxt"
done
draw() {
    echo "$1"
    "$layrubnet" plan "${@:2}" --svg "docs/images/$1.svg" >/dev/null
}
draw resnet50-caffe "$work/ResNet-50.prototxt" --memory caffe
draw resnet50-reuse "$work/ResNet-50.prototxt" --memory reuse
draw resnet50-recompute "$work/ResNet-50.prototxt" --memory recompute
draw resnet50-hybrid "$work/ResNet-50.prototxt" --memory hybrid
draw lenet-hybrid examples/mnist/lenet_train_test.prototxt --input-shape data=64,1,28,28 \
    --memory hybrid
draw vgg16-budget "$work/VGG-16.prototxt" --memory-budget 4GiB
"$layrubnet" plan "$work/VGG-16.prototxt" --memory-budget 4GiB --compare --html "$work/page.html" \
    >/dev/null
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1500,900 \
    --user-data-dir="$work/profile" --virtual-time-budget=5000 \
    --screenshot="$PWD/docs/images/page.png" "file://$work/page.html#auto/conv1_2@1.data" 2>/dev/null
