// SPDX-License-Identifier: Apache-2.0
// Schedules are lowered on trust. Where that fails, or the plan does not prove, the schedule may be
// at fault, and only its own proof says where.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "base/looks.h"
#include "schedule/schedule.h"

namespace coll {

// Throws Error(internal) with the prover's sentence about a schedule that is wrong, after its
// collective, `name`, and for how many ranks it is.
void refuse_wrong(const Schedule& schedule, const std::string& name);

// As refuse_wrong(), but what must hold for anything to index by the schedule alone: cheap.
void refuse_broken(const Schedule& schedule, const std::string& name);

// What `lowered` returns, a plan that is proved, made of this schedule. Where it throws instead,
// refuse_wrong() comes first.
template <class Work>
auto blaming(const Schedule& schedule, const std::string& name, Work lowered) {
  refuse_broken(schedule, name);
  try {
    return lowered();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const Stopped&) {
    throw;
  } catch (const std::exception&) {
    refuse_wrong(schedule, name);
    throw;
  }
}

}  // namespace coll
