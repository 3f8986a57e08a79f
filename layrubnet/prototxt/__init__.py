"""Reading and writing Caffe's files: prototxt with upgrades and rules, weights, solver states."""
