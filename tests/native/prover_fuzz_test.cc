// SPDX-License-Identifier: Apache-2.0
// Whatever is handed to coll_prove_encoded, it answers: no crash, no hang, no memory without end.
// Arrays are damaged encodings of real schedules and plans, so that most get past the reader.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <span>
#include <vector>

#include "check.h"
#include "collectives.h"
#include "instrumented.h"
#include "mutants.h"

namespace {

using Words = std::vector<std::int32_t>;

constexpr int kCases = 20000;
constexpr long kMostMemory = 1L << 20;  // KiB

std::vector<Words> encodings() {
  std::vector<Words> all;
  const auto keep = [&](coll_status status, std::int32_t* data, std::size_t length) {
    CHECK(status == COLL_OK);
    all.emplace_back(data, data + length);
    coll_free(data);
  };
  std::int32_t* data = nullptr;
  std::size_t length = 0;
  for (int a = 0; a < coll_algorithm_count(); ++a) {
    for (const int p : {1, 2, 3, 4}) {
      if (coll_algorithm_fits(a, p) == 0) continue;
      coll_status status = coll_schedule(a, p, 0, &data, &length);
      keep(status, data, length);
      const coll_lowering how = {.size = sizeof(how),
                                 .mode = static_cast<int>(all.size() % 4),
                                 .depth = 2,
                                 .lag = p % 2,
                                 .stores = a % 2};
      status = coll_plan(a, p, 0, &how, &data, &length);
      keep(status, data, length);
    }
  }
  return all;
}

std::int32_t strange_number(mutants::Random& random) {
  using limits = std::numeric_limits<std::int32_t>;
  static constexpr std::array extremes = {
      limits::max(), limits::min(), limits::max() / 2, 1 << 24, 1 << 20, 1 << 16, 1023, -1};
  return random.below(2) == 0 ? extremes[random.index(extremes.size())] : random.below(12) - 2;
}

void damage(Words& words, const Words& other, mutants::Random& random) {
  const std::size_t at = random.index(words.size());
  const auto here = words.begin() + static_cast<int>(at);
  switch (random.below(20)) {
    case 0:
      words.erase(here);
      break;
    case 1:
      words.insert(here, strange_number(random));
      break;
    case 2:  // the head of one encoding, the tail of another
      words.resize(at);
      words.insert(words.end(), other.begin() + static_cast<int>(random.index(other.size())),
                   other.end());
      break;
    case 3:
    case 4:
      *here = strange_number(random);
      break;
    case 5:
    case 6:
      *here =
          static_cast<std::int32_t>(static_cast<std::uint32_t>(*here) ^ (1U << random.below(32)));
      break;
    default:  // most words are small: ranks, cells, ops
      *here = std::max(-1, *here % 100 + random.below(5) - 2);
  }
}

Words damaged(const std::vector<Words>& from, mutants::Random& random) {
  Words words = from[random.index(from.size())];
  for (int i = 1 + random.below(2); i > 0 && !words.empty(); --i) {
    damage(words, from[random.index(from.size())], random);
  }
  return words;
}

Words random_words(mutants::Random& random) {
  Words words(random.index(40));
  for (std::int32_t& word : words) word = strange_number(random);
  if (words.size() > 1 && random.below(2) == 0) {
    words[0] = random.below(2) == 0 ? 0x5343 : 0x504C;
    words[1] = 1;
  }
  return words;
}

struct Answers {
  int refused = 0, rejected = 0, proved = 0;
};

void ask(const Words& words, mutants::Random& random, Answers& answers) {
  coll_proof proof{};
  const int checks = random.below(4) == 0 ? random.below(128) : COLL_CHECK_ALL;
  const coll_status status =
      coll_prove_encoded(words.data(), words.size(), random.below(2),
                         random.below(coll_algorithm_count() + 1) - 1, checks, &proof);
  CHECK(status == COLL_OK || status == COLL_INVALID_ARGUMENT);
  if (status != COLL_OK) {
    ++answers.refused;
    return;
  }
  CHECK(proof.proved != 0 || proof.message[0] != '\0');
  ++(proof.proved != 0 ? answers.proved : answers.rejected);
}

TEST(any_array_is_answered) {
  mutants::Random random(20260726);
  const std::vector<Words> originals = encodings();
  Answers answers;
  for (int i = 0; i < kCases; ++i) {
    ask(i % 8 == 0 ? random_words(random) : damaged(originals, random), random, answers);
  }
  std::printf("%d refused, %d rejected, %d proved\n", answers.refused, answers.rejected,
              answers.proved);
  CHECK(answers.rejected > kCases / 10);
  rusage usage{};
  CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  CHECK(check::kInstrumented || usage.ru_maxrss < kMostMemory);
}

// What a small array may ask for at most: as many cells as the prover takes on, or one more.
TEST(large_vectors_are_refused_or_proved) {
  constexpr std::int32_t kSchedule = 0x5343, kVersion = 1, kBarrier = 5;
  for (const std::int32_t chunks : {1 << 20, (1 << 24) + 1, 1 << 30}) {
    for (std::int32_t kind = 0; kind <= kBarrier; ++kind) {
      const Words words = {kSchedule, kVersion, kind, 1, 0, chunks, 0};
      coll_proof proof{};
      CHECK(coll_prove_encoded(words.data(), words.size(), 1, -1, COLL_CHECK_ALL, &proof) ==
            COLL_OK);
      CHECK((proof.proved != 0) == (chunks == 1 << 20));
    }
  }
}

}  // namespace
