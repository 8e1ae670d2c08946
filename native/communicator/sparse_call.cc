// SPDX-License-Identifier: Apache-2.0
#include "communicator/sparse_call.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"
#include "communicator/fingerprint.h"
#include "kernels/quantise.h"
#include "sparse/aligned_sum.h"
#include "transport/usable_cores.h"

namespace coll {
SparseCall::SparseCall(int rank, int ranks, double timeout, const SparseCosts& costs, Coding usual,
                       const SparseWish& wish, OpeningRooms& rooms)
    : MessageSteps(rank, ranks, wish.timeout > 0 ? wish.timeout : timeout, purpose_of(wish),
                   wish.of_timeout),
      costs_(costs),
      wish_(wish),
      rooms_(rooms) {
  // What the others hand in to a broadcast is not looked at.
  if (wish.kind == Kind::broadcast && rank != wish.root) wish_.pairs.n = 0;
  validate(wish_, ranks);
  words_ = words_of(wish_);
  terms_ = sparse_terms(wish.dtype, total(), wish.dense_above);
  result_dense_above_ = terms_.dense_above;
  terms_.coding = wish.coding == Coding::automatic ? usual : wish.coding;
  if (terms_.coding == Coding::coded && wish.dense_above != wish.dense_above) {
    // Up to there a bit for each element and the values that are there take fewer bytes than all.
    terms_.dense_above = 1 - 1 / (8 * static_cast<double>(terms_.value_bytes()));
  }
  terms_.summation = summation_of(wish);
  if (folds()) terms_.op = wish.op;
  divided_ = needs_of(wish).one_fold;
  if (divided_ && wish.op == Reduction::avg) terms_.divisor = ranks;
  terms_.quantise_bits = static_cast<unsigned>(wish.quantise_bits);
  wish_.algorithm = algorithm_of(wish);
}

// Elements of the vector that all ranks work on.
std::uint64_t SparseCall::total() const noexcept {
  return wish_.kind == Kind::allgather ? wish_.length * static_cast<std::uint64_t>(ranks())
                                       : wish_.length;
}

// What a rank's vector is of.
SparseStream SparseCall::stretch_of(int rank) const noexcept {
  const bool part = wish_.kind == Kind::allgather;
  return {.first = part ? wish_.length * static_cast<std::uint64_t>(rank) : 0,
          .length = wish_.length};
}

Status SparseCall::begin() {
  prepared([this] {
    try {
      own_ = canonical(terms_, wish_.pairs, wish_.length, stretch_of(rank()).first);
    } catch (const Error& error) {
      if (error.status != Status::invalid_argument) throw;
      refuse(wish_, error.what());
    }
  });
  openings_.emplace(ranks(), may_follow() ? rooms_.of(hash_words(words_)) : 0);
  openings_->tell(terms_, own_);
  openings_->mine().cores = usable_cores_of_late();
  take_room();
  return agree(openings_->told(), openings_->heard(), openings_->bytes_each(), words_);
}

// That of a vector with all values that there will be in any case; 0: of none.
std::uint64_t SparseCall::bytes_of_dense() const noexcept {
  const int a = wish_.algorithm;
  const bool all_dense =
      a == kSparseDense ||
      (a >= 0 && sparse_algorithms()[static_cast<std::size_t>(a)].dense_when_folded);
  if (wish_.output != SparseOutput::dense && !all_dense) return 0;
  const std::uint64_t parts =
      wish_.kind == Kind::reduce_scatter ? static_cast<std::uint64_t>(ranks()) : 1;
  return total() / parts * terms_.value_bytes();
}

// The ranks tell each other where one has none for that, before anything else is sent. What is
// small is there, or nothing is.
void SparseCall::take_room() {
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 24;
  const std::uint64_t bytes = bytes_of_dense();
  if (bytes < kLarge) return;
  try {
    room_ = room_of(bytes, 1);
  } catch (const NoRoom&) {
    openings_->mine().whole = Opening::kLacksRoom;
    openings_->mine().entries = bytes;
  }
}

// All ranks know alike, so the communicator works on.
void SparseCall::check_room() const {
  for (int r = 0; r < ranks(); ++r) {
    const Opening& opening = openings_->of(r);
    if (opening.whole != Opening::kLacksRoom) continue;
    throw labelled(Error(Status::out_of_memory,
                         "rank " + std::to_string(r) + " has no memory for the " +
                             in_bytes(opening.entries) +
                             " of a vector with all values: ask for a sparse result, or for "
                             "another algorithm; nothing was sent, the communicator works on",
                         r));
  }
}

bool SparseCall::step(Status& status) {
  if (stage_ == Stage::dense) {
    guarded([this] { deliver(form_of({own_}), {own_}); });
    return false;
  }
  if (stage_ == Stage::agreeing) {
    check_room();
    if (guarded([this] { return hears_all(); })) return false;
    result_.algorithm = wish_.algorithm;
    if (wish_.algorithm < 0) {
      const SparseProblem known = problem();
      result_.algorithm = choose_sparse(known);
      if (may_follow()) find_room(known, result_.algorithm);
    }
    if (result_.algorithm == kSparseDense) {
      status = begin_dense();
      return true;
    }
    guarded([this] { prepare(); });
  } else if (guarded([this] { return goes_on_selecting(); })) {
    status = exchange_counts();
    return true;
  }
  if (guarded([this] { return next_round(); })) return true;
  guarded([this] { finish(); });
  return false;
}

// Whether what the ranks have told is all that there is.
bool SparseCall::hears_all() {
  const bool free = wish_.algorithm < 0;
  if (free && openings_->all_are_whole()) {
    deliver_at_once();
    // Room that is no longer needed would be sent for nothing.
    const std::size_t needed = openings_->most_needed();
    if (2 * needed < openings_->room()) rooms_.set(hash_words(words_), needed);
    return true;
  }
  for (int r = 0; r < ranks(); ++r) {
    sketches_.push_back(openings_->of(r).sketch(terms_, stretch_of(r)));
  }
  return false;
}

void SparseCall::deliver_at_once() {
  std::vector<SparseStream> streams;
  for (int r = 0; r < ranks(); ++r) {
    streams.push_back(openings_->stream(terms_, r, stretch_of(r)));
  }
  if (wish_.kind == Kind::broadcast) {
    streams = {streams[static_cast<std::size_t>(wish_.root)]};
  } else if (folds()) {
    const bool part = wish_.kind == Kind::reduce_scatter;
    const Stretches own(part ? equal_bounds(wish_.length, ranks())
                             : std::vector<std::uint64_t>{0, wish_.length});
    const SparseStream of = own.of(part ? rank() : 0);
    for (SparseStream& stream : streams) stream = slice(terms_, stream, of.first, of.length);
    streams = {added(streams)};
  }
  result_.algorithm = kSparseAtOnce;
  result_.bytes = openings_->bytes_each() * static_cast<std::uint64_t>(ranks() - 1);
  deliver(form_of(streams), streams);
}

SparseStream SparseCall::added(const std::vector<SparseStream>& streams) const {
  return terms_.summation == Summation::merged ? sum(terms_, streams)
                                               : aligned_sum(terms_, streams, true);
}

void SparseCall::prepare() {
  stage_ = Stage::by_messages;
  const auto& chosen = sparse_algorithms()[static_cast<std::size_t>(result_.algorithm)];
  const Algorithm& algorithm = chosen.algorithm();
  const Layout layout(algorithm.kind, ranks(), wish_.root, algorithm.chunks(ranks()));
  Stretches stretches = stretches_of(chosen, layout.chunks);
  std::vector<SparseStream> cells = input(layout, stretches);
  terms_.quantise_key = random_key(wish_.seed, calls(), static_cast<std::uint64_t>(rank()));
  run_.emplace(terms_, layout, rank(), make_program(algorithm, ranks(), wish_.root, rank()),
               std::move(stretches), std::move(cells),
               chain(name(), static_cast<std::uint64_t>(result_.algorithm)));
  if (chosen.dense_when_folded) run_->make_dense_when_folded();
}

// What was begun is done, of the rounds or of the selection of the largest. Whether this goes on.
bool SparseCall::goes_on_selecting() {
  if (stage_ == Stage::by_messages) {
    run_->close_round();
    if (wish_.largest == 0 || largest_.has_value() || !run_->folded()) return false;
    largest_.emplace(terms_, run_->owned(), wish_.largest);
    equals_.resize(static_cast<std::size_t>(ranks()));
  } else if (stage_ == Stage::counting) {
    largest_->narrow(counts_);
  }
  if (largest_->open()) {
    stage_ = Stage::counting;
  } else if (largest_->tied() && stage_ != Stage::dividing) {
    stage_ = Stage::dividing;
  } else {
    stage_ = Stage::by_messages;
    run_->owned() = largest_->taken(equals_, rank());
    return false;
  }
  return true;
}

Status SparseCall::exchange_counts() {
  const bool counting = stage_ == Stage::counting;
  return run(Call{.kind = counting ? Kind::allreduce : Kind::allgather,
                  .dtype = Dtype::uint64,
                  .op = Reduction::sum,
                  .input = counting ? largest_->counts().data() : &largest_->equal(),
                  .output = counting ? counts_.data() : equals_.data(),
                  .count = counting ? counts_.size() : 1,
                  .timeout = left(),
                  .of_timeout = told()});
}

// The round before is over. False: it was the last one.
bool SparseCall::next_round() {
  if (!run_->open_round()) return false;
  for (SparseRun::Incoming& in : run_->incoming()) expect(in.from, in.parcel, in.most);
  for (const SparseRun::Outgoing& out : run_->outgoing()) {
    send(out.to, out.message.bytes.get(), out.message.size);
  }
  return true;
}

// What all ranks know.
SparseProblem SparseCall::problem() const {
  double entries = 0;
  for (const Sketch& sketch : sketches_) entries += static_cast<double>(sketch.entries);
  std::uint64_t cores = 0;
  for (int r = 0; r < ranks(); ++r) cores |= openings_->of(r).cores;
  return {.kind = wish_.kind,
          .ranks = ranks(),
          .length = static_cast<double>(total()),
          .entries = entries,
          .united = estimated_union(sketches_),
          .fullest = fullest_part(sketches_, total(), ranks()) * ranks(),
          .value_bytes = static_cast<double>(terms_.value_bytes()),
          .index_bytes = static_cast<double>(terms_.index_bytes),
          .dense_above = terms_.dense_above,
          .costs = costs_,
          .coded = terms_.coding == Coding::coded,
          .crowded = std::popcount(cores) < ranks(),
          .needs = needs_of(wish_)};
}

bool SparseCall::may_follow() const noexcept {
  return wish_.kind == Kind::allreduce && wish_.algorithm < 0;
}

// For the next call like this one, where that would have taken longer without.
void SparseCall::find_room(const SparseProblem& problem, int chosen) {
  std::size_t needed = openings_->most_needed();
  if (openings_->room() == 0) {
    double most = 0;
    for (const Sketch& s : sketches_) most = std::max(most, static_cast<double>(s.entries));
    needed = static_cast<std::size_t>(message_bytes(problem, most));
  }
  const double at_once = at_once_seconds(problem, static_cast<double>(needed));
  rooms_.set(hash_words(words_), at_once < sparse_cost(chosen, problem) ? needed : 0);
}

// Where parts have owners for the length of the call only, these get about as many entries; but
// where parts become dense, as many elements.
Stretches SparseCall::stretches_of(const SparseAlgorithm& chosen, int chunks) const {
  constexpr double kUneven = 1.1;
  if (chosen.gathers()) return Stretches::whole(total());
  const bool cut = wish_.kind == Kind::allreduce && chunks > 1 && !chosen.dense_when_folded;
  if (!cut || fullest_part(sketches_, total(), chunks) * chunks < kUneven) {
    return {total(), chunks};
  }
  return Stretches(balanced_bounds(sketches_, total(), chunks));
}

// The part of this rank's vector for each cell of its input, with all values where these take less.
std::vector<SparseStream> SparseCall::input(const Layout& layout,
                                            const Stretches& stretches) const {
  std::vector<SparseStream> cells;
  const int n = layout.cells(rank(), Buffer::input);
  for (int i = 0; i < n; ++i) {
    const SparseStream of = stretches.of(layout.chunk(rank(), Buffer::input, i));
    const SparseStream part = slice(terms_, own_, of.first, of.length);
    const bool dense = terms_.wants_dense(part.entries, part.length);
    cells.push_back(dense ? made_dense(terms_, part) : part);
  }
  return cells;
}

Status SparseCall::begin_dense() {
  stage_ = Stage::dense;
  room_.reset();
  guarded([this] {
    own_ = made_dense(terms_, own_);
    if (own_.entries > 0 && own_.owner == nullptr) {
      throw Error(Status::internal, "a dense vector that is not its own");
    }
  });
  auto* values = const_cast<std::byte*>(own_.values);
  divided_ = true;
  Call call = as_dense(wish_);
  call.input = call.output = values;
  call.timeout = left();
  call.of_timeout = told();
  return run(call);
}

Form SparseCall::form_of(const std::vector<SparseStream>& streams) const {
  if (wish_.output == SparseOutput::pairs) return Form::pairs;
  if (wish_.output == SparseOutput::dense) return Form::dense;
  std::uint64_t entries = 0, length = 0;
  for (const SparseStream& s : streams) {
    entries += s.entries;
    length += s.length;
  }
  const double share = result_dense_above_ * static_cast<double>(length);
  return static_cast<double>(entries) > share ? Form::dense : Form::pairs;
}

void SparseCall::finish() {
  std::vector<SparseStream> streams = run_->output();
  const auto& chosen = sparse_algorithms()[static_cast<std::size_t>(result_.algorithm)];
  if (chosen.gathers()) streams = {added(streams)};
  result_.bytes = run_->sent_bytes();
  result_.messages = run_->sent_messages();
  result_.rounds = run_->rounds();
  const Form form = form_of(streams);
  deliver(form, streams);
}

void SparseCall::deliver(Form form, const std::vector<SparseStream>& streams) {
  room_.reset();
  SparseStream whole = at_origin(terms_, joined(terms_, streams, form));
  const auto n = whole.entries;
  if (folds() && wish_.op == Reduction::avg && !divided_ && n > 0) {
    const std::shared_ptr<std::byte[]> memory = room_of(n, terms_.value_bytes());
    const void* const source = whole.values;
    fold_in_blocks(wish_.dtype, Reduction::avg, {&source, 1}, memory.get(), n,
                   static_cast<double>(ranks()));
    whole = with_values(terms_, std::move(whole), memory);
  }
  const bool to_the_bit =
      terms_.summation == Summation::aligned || terms_.summation == Summation::exact;
  if (folds() && to_the_bit) whole = with_positive_zeros(terms_, whole);
  result_.terms = terms_;
  result_.stream = std::move(whole);
}

}  // namespace coll
