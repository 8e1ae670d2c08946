// SPDX-License-Identifier: Apache-2.0
// What it costs to hand a core over, beside a sched_yield that finds nobody to hand it to.
#pragma once

namespace limits {

// From a sched_yield() of one process until another one, on the same core, runs. Where the kernel
// takes several yields for it, all of them count. Throws std::runtime_error.
double switching_yield_ns(int core);

}  // namespace limits
