#pragma once
#error "pypoplar has no quarter in codelets yet: use half"
