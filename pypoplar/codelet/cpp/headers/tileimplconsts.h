#pragma once
#define CTXT_WORKERS 6
