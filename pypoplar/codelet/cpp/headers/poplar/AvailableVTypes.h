// Which layouts there are: all those that name their elements one by one.
#pragma once
#define POPLAR_AVAILABLE_VTYPES 1
