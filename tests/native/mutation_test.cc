// SPDX-License-Identifier: Apache-2.0
// Attacks the provers with mutants of every algorithm's schedules and plans. Here it is checked
// that nothing crashes, that most are rejected, and that every rejection says where. Whether a
// survivor is a hole or as right as the original is judged by tests/mutation, from what is written
// with
//   MUTATION_REPORT=file   originals, survivors, a sample of the rejected, and the scores, as JSON
//   MUTATION_MUTANTS=n     about so many mutants of schedules and as many of plans instead of 1000;
//                          0: all
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "communicator/call.h"
#include "communicator/claims_of.h"
#include "instrumented.h"
#include "mutants.h"
#include "plan/encode.h"
#include "plan/lower.h"
#include "plan/reach.h"
#include "prove/plan_proof.h"
#include "prove/schedule_proof.h"
#include "schedule/encode.h"

using namespace coll;

namespace {

constexpr std::array kChecks = {std::pair{"structure", kStructure},
                                std::pair{"matching", kMatching},
                                std::pair{"defined", kDefined},
                                std::pair{"result", kResult},
                                std::pair{"input", kInput},
                                std::pair{"cost", kCost},
                                std::pair{"tree", kTree}};
// A mutant that these do not see must be found out by what it computes.
constexpr unsigned kObvious = kStructure | kMatching | kCost;
// Of the rejected, so many go into the report: one in ...
constexpr int kSample = 40;

// How many mutants a level is to make; 0: all.
int wanted() {
  const char* text = std::getenv("MUTATION_MUTANTS");
  return text != nullptr ? std::atoi(text) : check::kShort ? 300 : 1000;
}

// Mutants of one subject do not depend on what else is attacked: a new algorithm leaves them alone.
unsigned seed_of(const std::string& name) {
  unsigned hash = 2166136261U;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

std::FILE* report_file() {
  const char* name = std::getenv("MUTATION_REPORT");
  static std::FILE* file = name != nullptr ? std::fopen(name, "w") : nullptr;
  return file;
}

struct Score {
  int made = 0, quiet = 0, rejected = 0;
  std::array<int, kChecks.size()> alone{};

  void add(const Score& s) {
    made += s.made;
    quiet += s.quiet;
    rejected += s.rejected;
    for (std::size_t i = 0; i < alone.size(); ++i) alone[i] += s.alone[i];
  }
};

// Does the text name one of a kind, as in "rank 3"?
bool names(const std::string& text, const std::string& kind) {
  for (std::size_t at = text.find(kind + " "); at != std::string::npos;
       at = text.find(kind + " ", at + 1)) {
    const std::size_t digit = at + kind.size() + 1;
    if (digit < text.size() && std::isdigit(static_cast<unsigned char>(text[digit])) != 0) {
      return true;
    }
  }
  return false;
}

void expect_place(const std::string& message) {
  const bool inside = names(message, "step") || names(message, "op") || names(message, "chunk") ||
                      names(message, "area");
  if (!names(message, "rank") || !inside) check::fail("says not where: " + message);
}

// What mutants are made of, and what they are held to.
template <class Loose>
struct Subject {
  std::string name;
  Loose original;
  Claims claims;
};

Report prove_one(const loose::Schedule& s, bool in_place, const Claims& claims, unsigned checks) {
  return prove(s.tight(), in_place, claims, checks);
}
Report prove_one(const loose::Plan& s, bool in_place, const Claims& claims, unsigned checks) {
  const Plan plan = s.tight();
  return prove(plan, in_place, usual_tiles(plan), checks, claims);
}

// What an interpreter can run. A mixed plan is a plan for every choice of what is within reach: of
// a rejected one, those that are wrong.
std::vector<std::vector<std::int32_t>> runnable(const loose::Schedule& s, const Claims&, bool) {
  return {encode(s.tight())};
}
std::vector<std::vector<std::int32_t>> runnable(const loose::Plan& s, const Claims& claims,
                                                bool rejected) {
  const Plan plan = s.tight();
  if (!plan.mixed) return {encode(plan)};
  std::vector<std::vector<std::int32_t>> all;
  for (const Reach& reach : usual_reaches(plan.layout.p)) {
    const Plan one = resolve(plan, reach);
    const bool right = prove(one, false, usual_tiles(one), kAllChecks, claims).proved;
    if (right != rejected) all.push_back(encode(one));
  }
  return all;
}

template <class Loose>
class Attack {
 public:
  Attack(const char* level, std::span<const mutants::Mutator<Loose>> mutators)
      : level_(level), mutators_(mutators) {}

  // `effort` in quarters of an attempt, for a mutator of weight 1.
  void attack(const Subject<Loose>& subject, int effort) {
    std::string message;
    if (!proved(subject.original, subject.claims, kAllChecks, message)) {
      check::fail(subject.name + ": " + message);
    }
    write(subject, "none", "", subject.original, "");
    const Loose same = loose::canonical(subject.original);
    std::set<std::vector<std::int32_t>> seen;
    mutants::Random random(seed_of(subject.name));
    for (const auto& mutator : mutators_) {
      const int attempts = (effort * mutator.weight + random.below(4)) / 4;
      for (int i = 0; i < attempts; ++i) {
        Loose mutant = subject.original;
        std::string change;
        if (!mutator.damage(mutant, random, change)) continue;
        if (loose::canonical(mutant) == same) continue;
        if (!seen.insert(encode(mutant.tight())).second) continue;
        judge(subject, mutator.name, change, mutant);
      }
    }
  }

  Score total() const {
    Score sum;
    for (const auto& [name, score] : scores_) sum.add(score);
    return sum;
  }

  void print() const {
    std::printf("%-9s %-30s %6s %6s %8s %9s  killed by", level_, "mutator", "made", "quiet",
                "rejected", "survivors");
    for (const auto& [name, bit] : kChecks) std::printf(" %9s", name);
    std::printf("\n");
    for (const auto& mutator : mutators_) {
      const auto found = scores_.find(mutator.name);
      if (found != scores_.end()) print(mutator.name, found->second);
    }
    print("all", total());
  }

 private:
  bool proved(const Loose& mutant, const Claims& claims, unsigned checks, std::string& message) {
    for (const bool in_place : {false, true}) {
      const Report report = prove_one(mutant, in_place, claims, checks);
      if (report.proved) continue;
      message = report.message;
      return false;
    }
    return true;
  }

  void judge(const Subject<Loose>& subject, const char* mutator, const std::string& change,
             const Loose& mutant) {
    Score& score = scores_[mutator];
    ++score.made;
    std::string message, alone;
    const bool survives = proved(mutant, subject.claims, kAllChecks, message);
    if (proved(mutant, subject.claims, kObvious, alone)) ++score.quiet;
    if (survives) {
      write(subject, mutator, change, mutant, "");
      return;
    }
    ++score.rejected;
    expect_place(message);
    for (std::size_t i = 0; i < kChecks.size(); ++i) {
      if (proved(mutant, subject.claims, kChecks[i].second, alone)) continue;
      ++score.alone[i];
      expect_place(alone);
    }
    // What has no structure cannot be run, by nobody.
    const bool runs = proved(mutant, subject.claims, kStructure, alone);
    if (runs && score.rejected % kSample == 1) write(subject, mutator, change, mutant, message);
  }

  void write(const Subject<Loose>& subject, const char* mutator, const std::string& change,
             const Loose& mutant, const std::string& message) const {
    if (report_file() == nullptr) return;
    for (const auto& words : runnable(mutant, subject.claims, !message.empty())) {
      write(subject, mutator, change, words, message);
    }
  }

  void write(const Subject<Loose>& subject, const char* mutator, const std::string& change,
             const std::vector<std::int32_t>& words, const std::string& message) const {
    std::FILE* file = report_file();
    const Claims& c = subject.claims;
    std::fprintf(
        file,
        "{\"level\": \"%s\", \"subject\": \"%s\", \"mutator\": \"%s\", \"change\": \"%s\", "
        "\"message\": \"%s\", \"same_on_ranks\": %d, \"same_in_vector\": %d, "
        "\"rank_order\": %d, \"words\": [",
        level_, subject.name.c_str(), mutator, change.c_str(), message.c_str(), c.same_on_ranks,
        c.same_in_vector, c.rank_order);
    const char* comma = "";
    for (const std::int32_t word : words) {
      std::fprintf(file, "%s%d", comma, word);
      comma = ", ";
    }
    std::fprintf(file, "]}\n");
  }

  void print(const char* name, const Score& s) const {
    std::printf("%-9s %-30s %6d %6d %8d %9d           ", level_, name, s.made, s.quiet, s.rejected,
                s.made - s.rejected);
    for (const int kills : s.alone) std::printf(" %9d", kills);
    std::printf("\n");
    if (report_file() == nullptr) return;
    std::fprintf(report_file(),
                 "{\"level\": \"%s score\", \"mutator\": \"%s\", \"made\": %d, \"quiet\": %d, "
                 "\"rejected\": %d, \"alone\": {",
                 level_, name, s.made, s.quiet, s.rejected);
    for (std::size_t i = 0; i < kChecks.size(); ++i) {
      std::fprintf(report_file(), "%s\"%s\": %d", i == 0 ? "" : ", ", kChecks[i].first, s.alone[i]);
    }
    std::fprintf(report_file(), "}}\n");
    std::fflush(report_file());
  }

  const char* level_;
  std::span<const mutants::Mutator<Loose>> mutators_;
  std::map<std::string, Score> scores_;
};

std::string text_of(const Algorithm& a, int p, int root) {
  return std::string(name_of(a.kind)) + " " + a.name + " p " + std::to_string(p) + " root " +
         std::to_string(root);
}

int root_of(const Algorithm& a, int p) { return Layout(a.kind, p, 0, p).rooted() ? p / 2 : 0; }

// At least half of the mutants must not be obvious, and few may survive.
void expect_good(const Score& s) {
  CHECK(s.made > (check::kShort ? 250 : 500));
  CHECK(2 * s.quiet >= s.made);
  CHECK(10 * s.rejected >= 9 * s.made);
}

template <class Loose>
auto both(std::span<const mutants::Mutator<Loose>> some,
          std::span<const mutants::Mutator<Loose>> more) {
  std::vector<mutants::Mutator<Loose>> all(some.begin(), some.end());
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// What may be attacked of one algorithm.
struct Case {
  const Algorithm* algorithm;
  int p;
  Lowering how;

  int root() const { return root_of(*algorithm, p); }
  std::string name() const { return text_of(*algorithm, p, root()); }
  std::string name_of_plan() const {
    return name() + " mode " + std::to_string(static_cast<int>(how.mode)) + " depth " +
           std::to_string(how.depth) + " lag " + std::to_string(how.lag) +
           (how.mixed ? " mixed" : "") +
           (how.stores == Stores::non_temporal ? " non-temporal" : "");
  }
};

// First a case of each algorithm, chosen by lot, then another of each: whoever stops early has
// seen of all algorithms alike.
std::vector<Case> in_turns(std::vector<std::vector<Case>> of_algorithm) {
  std::size_t most = 0;
  for (auto& cases : of_algorithm) {
    most = std::max(most, cases.size());
    mutants::Random random(cases.empty() ? 0 : seed_of(cases.front().name()));
    for (std::size_t i = cases.size(); i > 1; --i) std::swap(cases[i - 1], cases[random.index(i)]);
  }
  std::vector<Case> all;
  for (std::size_t i = 0; i < most; ++i) {
    for (const auto& cases : of_algorithm) {
      if (i < cases.size()) all.push_back(cases[i]);
    }
  }
  return all;
}

template <class Loose, class MakeSubject>
void attack_all(Attack<Loose>& attack, std::vector<std::vector<Case>> of_algorithm, int effort,
                MakeSubject&& subject) {
  // A short attack makes few mutants of each, so that it still sees every algorithm.
  if (wanted() > 0 && wanted() < 5000) effort = (effort + 1) / 3;
  for (const Case& c : in_turns(std::move(of_algorithm))) {
    if (wanted() > 0 && attack.total().made >= wanted()) break;
    attack.attack(subject(c), effort);
  }
  attack.print();
  expect_good(attack.total());
}

TEST(mutants_of_schedules) {
  const auto mutators = both(mutants::of_steps(), mutants::of_messages());
  Attack<loose::Schedule> attack("schedule", mutators);
  std::vector<std::vector<Case>> cases;
  for (const Algorithm* a : algorithms()) {
    auto& mine = cases.emplace_back();
    for (const int p : {2, 3, 4, 5, 6, 7, 8, 9, 13}) {
      if (a->fits(p)) mine.push_back({a, p, {}});
    }
  }
  attack_all(attack, std::move(cases), 5, [](const Case& c) {
    return Subject<loose::Schedule>{c.name(),
                                    loose::Schedule(make_schedule(*c.algorithm, c.p, c.root())),
                                    claims_of(*c.algorithm, c.p)};
  });
}

std::vector<std::vector<Case>> cases_of(std::span<const Lowering> hows) {
  std::vector<std::vector<Case>> cases;
  for (const Algorithm* a : algorithms()) {
    auto& mine = cases.emplace_back();
    for (const int p : {2, 3, 4, 5, 6, 8}) {
      for (const Lowering& how : hows) {
        if (!a->fits(p)) continue;
        const Case c{a, p, how};
        // Many ranks make many mutants alike: there, of some of the lowerings.
        if (p <= 5 || seed_of(c.name_of_plan()) % 6 == 0) mine.push_back(c);
      }
    }
  }
  return cases;
}

Subject<loose::Plan> subject_of(const Case& c) {
  const Schedule schedule = make_schedule(*c.algorithm, c.p, c.root());
  return {c.name_of_plan(), loose::Plan(lower(schedule, c.how)), claims_of(*c.algorithm, c.p)};
}

TEST(mutants_of_plans) {
  static constexpr Stores kAround = Stores::non_temporal;
  static constexpr std::array<Lowering, 11> hows = {{{Mode::staged, 1, 0},
                                                     {Mode::inlined, 2, 1},
                                                     {Mode::pull, 2, 1},
                                                     {Mode::push, 2, 1},
                                                     {Mode::staged, 4, 1},
                                                     {Mode::inlined, 2, 0},
                                                     {Mode::staged, 2, 1},
                                                     {Mode::push, 2, 0},
                                                     {Mode::staged, 4, 1, false, kAround},
                                                     {Mode::pull, 2, 1, false, kAround},
                                                     {Mode::push, 2, 1, false, kAround}}};
  const auto mutators = both(mutants::of_waits(), mutants::of_moves());
  Attack<loose::Plan> attack("plan", mutators);
  attack_all(attack, cases_of(hows), 2, subject_of);
}

// Waits that a mixed plan does without in one of its forms it may need in another.
TEST(mutants_of_mixed_plans) {
  static constexpr std::array<Lowering, 4> hows = {{{Mode::push, 2, 1, true, Stores::non_temporal},
                                                    {Mode::pull, 2, 1, true},
                                                    {Mode::push, 4, 0, true},
                                                    {Mode::pull, 1, 0, true}}};
  const auto mutators = mutants::of_waits();
  Attack<loose::Plan> attack("mixed_plan", mutators);
  attack_all(attack, cases_of(hows), 2, subject_of);
}

}  // namespace
