#pragma once
#include <ipu_intrinsics>
#include <tileimplconsts.h>
#define WORKER_ALIGN
