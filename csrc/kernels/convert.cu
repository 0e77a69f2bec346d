// load_row / store_row: conversion of runs of elements between stored types and the types kernels compute in.
//
// Used by the host build of every elementwise kernel (csrc/device/tile_host.h); instantiated here once so that no other
// file compiles the matrix of conversions. The CUDA build converts element by element in registers and leaves this
// empty.
#include "csrc/device/tile.h"

#include "csrc/device/convert_host.h"
