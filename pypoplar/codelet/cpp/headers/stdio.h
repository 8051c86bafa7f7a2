#pragma once
#include <print.h>
