// SPDX-License-Identifier: Apache-2.0
// What the cells of a buffer stand for, per kind of collective. The only place that knows it.
#pragma once

#include "schedule/schedule.h"

namespace coll {

// The outline of a collective: all that the meaning of a cell depends on.
struct Layout {
  Kind kind;
  int p;
  int root;
  int chunks;

  explicit Layout(const Schedule& s) : Layout(s.kind, s.p, s.root, s.chunks) {}
  Layout(Kind kind, int p, int root, int chunks) : kind(kind), p(p), root(root), chunks(chunks) {}

  // How many of the chunks are one rank's own (allgather's input, reduce_scatter's output).
  int own_chunks() const { return chunks / p; }

  int cells(int rank, Buffer buffer) const {
    if (buffer == Buffer::input) {
      if (kind == Kind::allgather) return own_chunks();
      if (kind == Kind::broadcast) return rank == root ? chunks : 0;
    }
    if (buffer == Buffer::output) {
      if (kind == Kind::reduce_scatter) return own_chunks();
      if (kind == Kind::reduce) return rank == root ? chunks : 0;
    }
    return chunks;
  }

  // The chunk that cell 0 of the buffer stands for; the others follow.
  int first_chunk(int rank, Buffer buffer) const {
    const bool owned = (kind == Kind::allgather && buffer == Buffer::input) ||
                       (kind == Kind::reduce_scatter && buffer == Buffer::output);
    return owned ? rank * own_chunks() : 0;
  }
  int chunk(int rank, Buffer buffer, int cell) const { return first_chunk(rank, buffer) + cell; }

  // Must this rank end with the chunk in its output?
  bool delivers(int rank, int chunk) const {
    const int cell = chunk - first_chunk(rank, Buffer::output);
    return cell >= 0 && cell < cells(rank, Buffer::output);
  }

  // Does the rank's input hold a contribution to the chunk?
  bool contributes(int rank, int chunk) const {
    const int cell = chunk - first_chunk(rank, Buffer::input);
    return cell >= 0 && cell < cells(rank, Buffer::input);
  }

  // How many ranks contribute to each chunk of a result.
  int contributors() const { return kind == Kind::allgather || kind == Kind::broadcast ? 1 : p; }

  // Does every rank's result depend on every rank's entry into the call? Then finishing a call
  // proves that all ranks have finished the one before it.
  bool closed() const { return kind != Kind::broadcast && kind != Kind::reduce; }

  bool rooted() const { return kind == Kind::broadcast || kind == Kind::reduce; }

  // In place, an input cell is the output cell of the same chunk, where the rank has both.
  bool aliased(int rank, int input_cell) const {
    return delivers(rank, chunk(rank, Buffer::input, input_cell));
  }
  int alias(int rank, int input_cell) const {
    return chunk(rank, Buffer::input, input_cell) - first_chunk(rank, Buffer::output);
  }
};

}  // namespace coll
