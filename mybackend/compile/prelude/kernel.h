// What every generated source includes.
#pragma once

#include "platform.h"
#include "numbers.h"
#include "float8.h"
#include "loops.h"
#include "chunk.h"
#include "maths.h"
#include "arithmetic.h"
#include "reduce.h"
#include "atomic.h"
#include "random.h"
#include "scan.h"
#include "tile.h"
#include "search.h"
