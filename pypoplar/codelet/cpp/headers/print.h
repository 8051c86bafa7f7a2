#pragma once
extern "C" int printf(const char *format, ...);
