// SPDX-License-Identifier: Apache-2.0
// Algorithms, schedules, plans and proofs as data, behind the C interface.
#include <algorithm>
#include <string>
#include <string_view>

#include "abi/guarded.h"
#include "abi/proof.h"
#include "abi/stoppable.h"
#include "abi/words.h"
#include "algorithms/algorithm.h"
#include "base/formula.h"
#include "bootstrap/environment.h"
#include "communicator/claims_of.h"
#include "plan/encode.h"
#include "plan/lower.h"
#include "prove/plan_proof.h"
#include "prove/schedule_proof.h"
#include "prove/wrong_schedule.h"
#include "schedule/encode.h"
#include "select/choose.h"

namespace coll {
namespace {

constexpr const char* kNoProof = "no place for the proof";

const Algorithm& algorithm_at(int32_t index) {
  const auto table = algorithms();
  if (index < 0 || static_cast<std::size_t>(index) >= table.size()) {
    throw Error(Status::invalid_argument, "there is no algorithm number " + std::to_string(index));
  }
  return *table[static_cast<std::size_t>(index)];
}

void fill_sizes(const Plan& plan, coll_proof& out) {
  const RankPlan& first = plan.ranks.front();
  out.ops = first.exit() - 1;
  out.waits = static_cast<int32_t>(first.wait_pool.size());
  out.posts = static_cast<int32_t>(
      std::count_if(first.ops.begin(), first.ops.end(), [](const PlanOp& o) { return o.post; }));
}

// The plan of the algorithm for p ranks, as the caller wants it lowered.
Plan lowered(const Schedule& schedule, const Algorithm& a, const coll_lowering* wanted) {
  const coll_lowering& how = required(wanted, "no lowering is given");
  if (how.size < sizeof(coll_lowering)) {
    throw Error(Status::invalid_argument, "coll_lowering.size is too small");
  }
  if (how.mode < 0 || how.mode >= kModes) {
    throw Error(Status::invalid_argument, "there is no mode number " + std::to_string(how.mode));
  }
  if (how.stores < 0 || how.stores >= kStores) {
    throw Error(Status::invalid_argument,
                "there is no kind of stores number " + std::to_string(how.stores));
  }
  return blaming(schedule, a.name, [&] {
    return lower(schedule, {.mode = static_cast<Mode>(how.mode),
                            .depth = how.depth,
                            .lag = how.lag,
                            .stores = static_cast<Stores>(how.stores)});
  });
}

}  // namespace
}  // namespace coll

using coll::guarded;
using coll::Status;
using coll::stoppable;

extern "C" {

int32_t coll_algorithm_count(void) { return static_cast<int32_t>(coll::algorithms().size()); }

coll_status coll_algorithm_get(int32_t index, coll_algorithm* out) {
  return guarded([&] {
    const coll::Algorithm& a = coll::algorithm_at(index);
    coll_algorithm& entry = coll::required(out, "no place for the algorithm");
    entry = {.kind = static_cast<int32_t>(a.kind),
             .name = a.name,
             .paper = a.paper,
             .summary = a.summary,
             .rounds = a.rounds,
             .bytes = a.bytes,
             .reductions = a.reductions,
             .restriction = a.restriction};
    return Status::ok;
  });
}

int32_t coll_algorithm_find(int32_t kind, const char* name) {
  return name == nullptr ? -1 : coll::find_algorithm(static_cast<coll::Kind>(kind), name);
}

int32_t coll_algorithm_fits(int32_t index, int32_t p) {
  const auto table = coll::algorithms();
  if (p < 1 || index < 0 || static_cast<std::size_t>(index) >= table.size()) return 0;
  return table[static_cast<std::size_t>(index)]->fits(p) ? 1 : 0;
}

coll_status coll_formula(const char* formula, int32_t p, double* value) {
  return guarded([&] {
    const std::string_view text = &coll::required(formula, "no formula is given");
    coll::required(value, "no place for the value") = coll::evaluate(text, p);
    return Status::ok;
  });
}

coll_status coll_choose(int32_t kind, int32_t ranks, size_t bytes, int32_t* algorithm,
                        int32_t* mode) {
  return guarded([&] {
    int32_t& chosen = coll::required(algorithm, "no place for the algorithm");
    int32_t& way = coll::required(mode, "no place for the mode");
    if (kind < 0 || kind >= coll::kKinds) {
      throw coll::Error(Status::invalid_argument, "unknown collective " + std::to_string(kind));
    }
    const coll::Choice choice = coll::choose(static_cast<coll::Kind>(kind), ranks, bytes).near;
    chosen = choice.algorithm;
    way = static_cast<int32_t>(choice.mode);
    return Status::ok;
  });
}

coll_status coll_prove(int32_t algorithm, int32_t p, int32_t root, int32_t in_place,
                       coll_proof* out) {
  return stoppable([&] {
    coll_proof& proof = coll::required(out, coll::kNoProof);
    const coll::Algorithm& a = coll::algorithm_at(algorithm);
    const coll::Schedule schedule = coll::make_schedule(a, p, root);
    coll::fill(coll::prove(schedule, in_place != 0, coll::claims_of(a, p)), proof);
    return Status::ok;
  });
}

coll_status coll_prove_plan(int32_t algorithm, int32_t p, int32_t root, int32_t in_place,
                            const coll_lowering* how, coll_proof* out) {
  return stoppable([&] {
    coll_proof& proof = coll::required(out, coll::kNoProof);
    const coll::Algorithm& a = coll::algorithm_at(algorithm);
    const coll::Schedule schedule = coll::make_schedule(a, p, root);
    const coll::Plan plan = coll::lowered(schedule, a, how);
    coll::Report report = coll::prove(plan, in_place != 0, coll::usual_tiles(plan),
                                      coll::kAllChecks, coll::claims_of(a, p));
    if (!report.proved) {  // what is wrong with a schedule is told, not what its plan makes of that
      coll::Report of_schedule = coll::prove(schedule, in_place != 0, {});
      if (!of_schedule.proved) report = std::move(of_schedule);
    }
    coll::fill(report, proof);
    coll::fill_sizes(plan, proof);
    return Status::ok;
  });
}

coll_status coll_schedule(int32_t algorithm, int32_t p, int32_t root, int32_t** data,
                          size_t* length) {
  return stoppable([&] {
    coll::hand_out(coll::encode(coll::make_schedule(coll::algorithm_at(algorithm), p, root)), data,
                   length);
    return Status::ok;
  });
}

coll_status coll_plan(int32_t algorithm, int32_t p, int32_t root, const coll_lowering* how,
                      int32_t** data, size_t* length) {
  return stoppable([&] {
    const coll::Algorithm& a = coll::algorithm_at(algorithm);
    const coll::Schedule schedule = coll::make_schedule(a, p, root);
    const coll::Plan plan = coll::lowered(schedule, a, how);
    coll::hand_out(coll::encode(plan), data, length);
    return Status::ok;
  });
}

coll_status coll_prove_encoded(const int32_t* data, size_t length, int32_t in_place,
                               int32_t algorithm, int32_t checks, coll_proof* out) {
  return stoppable([&] {
    coll_proof& proof = coll::required(out, coll::kNoProof);
    const std::span<const std::int32_t> words(&coll::required(data, "no words are given"), length);
    const auto wanted = static_cast<unsigned>(checks);
    const auto claims_for = [&](int p) {
      return algorithm < 0 || p < 1 ? coll::Claims{}
                                    : coll::claims_of(coll::algorithm_at(algorithm), p);
    };
    if (!words.empty() && words.front() == coll::kPlanMagic) {
      const coll::Plan plan = coll::decode_plan(words);
      coll::fill(coll::prove(plan, in_place != 0, coll::usual_tiles(plan), wanted,
                             claims_for(plan.layout.p)),
                 proof);
      return Status::ok;
    }
    const coll::Schedule schedule = coll::decode(words);
    const coll::Claims claims = claims_for(schedule.p);
    coll::fill(coll::prove(schedule, in_place != 0, claims, wanted), proof);
    return Status::ok;
  });
}

int32_t coll_variable_count(void) {
  return static_cast<int32_t>(coll::environment_variables().size());
}

coll_status coll_variable_get(int32_t index, coll_variable* out) {
  return guarded([&] {
    const auto table = coll::environment_variables();
    if (index < 0 || static_cast<std::size_t>(index) >= table.size()) {
      throw coll::Error(Status::invalid_argument, "there is no such variable");
    }
    const coll::Variable& v = table[static_cast<std::size_t>(index)];
    coll_variable& entry = coll::required(out, "no place for the variable");
    entry = {.name = v.name, .type = v.type, .fallback = v.fallback, .sentence = v.sentence};
    return Status::ok;
  });
}

}  // extern "C"
