// SPDX-License-Identifier: Apache-2.0
// What the cells of a buffer stand for, per kind of collective. The only place that knows it.
#pragma once

#include "schedule/schedule.h"

namespace coll {

// The ranks [low, high).
struct Interval {
  int low = 0, high = 0;
  int size() const { return high - low; }
  bool operator==(const Interval&) const = default;
};

// The outline of a collective: all that the meaning of a cell depends on. A chunk is a piece of
// data that travels as one. Chunks are numbered along the vector; where every rank owns a part of
// the vector (allgather, reduce_scatter, gather, scatter), rank by rank; in alltoall, chunk
// s * p + d is what rank s has for rank d.
struct Layout {
  Kind kind;
  int p;
  int root;
  int chunks;

  explicit Layout(const Schedule& s) : Layout(s.kind, s.p, s.root, s.chunks) {}
  Layout(Kind kind, int p, int root, int chunks) : kind(kind), p(p), root(root), chunks(chunks) {}

  // Whether every rank owns a part of the vector.
  bool owned() const { return owned_input() || owned_output(); }
  // How many of the chunks are one rank's own.
  int own_chunks() const { return chunks / p; }
  // Whether the number of chunks suits the kind.
  bool chunks_suit() const {
    if (kind == Kind::alltoall) return chunks / p == p && chunks % p == 0;
    return chunks >= 1 && (!owned() || chunks % p == 0);
  }

  int cells(int rank, Buffer buffer) const {
    if (kind == Kind::alltoall) return p;
    if (buffer == Buffer::input) {
      if (owned_input()) return own_chunks();
      if (kind == Kind::broadcast || kind == Kind::scatter) return rank == root ? chunks : 0;
    }
    if (buffer == Buffer::output) {
      if (owned_output()) return own_chunks();
      if (kind == Kind::reduce || kind == Kind::gather) return rank == root ? chunks : 0;
      if (kind == Kind::exscan) return rank == 0 ? 0 : chunks;
    }
    return chunks;
  }

  // The chunk of a cell; -1 where it can be that of several (alltoall's scratch).
  int chunk(int rank, Buffer buffer, int cell) const {
    if (kind == Kind::alltoall) {
      return buffer == Buffer::input    ? rank * p + cell
             : buffer == Buffer::output ? cell * p + rank
                                        : -1;
    }
    return first_chunk(rank, buffer) + cell;
  }

  // The cell where the rank keeps the chunk in this buffer; -1 where it has none there.
  int cell(int rank, Buffer buffer, int chunk) const {
    if (kind == Kind::alltoall) {
      const int from = chunk / p, to = chunk % p;
      if (buffer == Buffer::input) return from == rank ? to : -1;
      if (buffer == Buffer::output) return to == rank ? from : -1;
      return (to - from + p) % p;  // by the distance of its whole way
    }
    const int cell = chunk - first_chunk(rank, buffer);
    return cell >= 0 && cell < cells(rank, buffer) ? cell : -1;
  }

  // Must this rank end with the chunk in its output?
  bool delivers(int rank, int chunk) const { return cell(rank, Buffer::output, chunk) >= 0; }
  // Does the rank's input hold a contribution to the chunk?
  bool contributes(int rank, int chunk) const { return cell(rank, Buffer::input, chunk) >= 0; }

  // The ranks whose contributions the chunk consists of where this rank is delivered it.
  Interval contributors(int rank, int chunk) const {
    switch (kind) {
      case Kind::allgather:
      case Kind::gather:
      case Kind::alltoall: {
        const int owner = chunk / own_chunks();
        return {owner, owner + 1};
      }
      case Kind::broadcast:
      case Kind::scatter:
        return {root, root + 1};
      case Kind::scan:
        return {0, rank + 1};
      case Kind::exscan:
        return {0, rank};
      default:
        return {0, p};
    }
  }

  // Cells of one rank's longest buffer: the vector of which costs are shares.
  int vector_cells() const { return kind == Kind::alltoall ? p : chunks; }

  // Whether values are folded, one rank's with another's.
  bool folds() const { return folds_all() || scans(); }
  // Whether a result has everybody's contribution: only then is there an epilogue (a mean).
  bool folds_all() const {
    return kind == Kind::allreduce || kind == Kind::reduce_scatter || kind == Kind::reduce;
  }
  bool scans() const { return kind == Kind::scan || kind == Kind::exscan; }

  // Does every rank's result depend on every rank's entry into the call? Then finishing a call
  // proves that all ranks have finished the one before it.
  bool closed() const { return !rooted() && !scans(); }

  bool rooted() const {
    return kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::gather ||
           kind == Kind::scatter;
  }

  // In place, an input cell shares its memory with an output cell, -1 where with none: that of the
  // same chunk, or, where blocks are exchanged (alltoall), that of the same place.
  int alias(int rank, int input_cell) const {
    if (kind == Kind::alltoall) return input_cell;
    return cell(rank, Buffer::output, chunk(rank, Buffer::input, input_cell));
  }

 private:
  bool owned_input() const { return kind == Kind::allgather || kind == Kind::gather; }
  bool owned_output() const { return kind == Kind::reduce_scatter || kind == Kind::scatter; }

  // The chunk that cell 0 of the buffer stands for; the others follow.
  int first_chunk(int rank, Buffer buffer) const {
    const bool own =
        (owned_input() && buffer == Buffer::input) || (owned_output() && buffer == Buffer::output);
    return own ? rank * own_chunks() : 0;
  }
};

}  // namespace coll
