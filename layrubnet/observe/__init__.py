"""What a run tells: Caffe's log lines, JSON lines, live progress, TensorBoard, plots, signals."""
