// SPDX-License-Identifier: Apache-2.0
// The two protocols of an MPI's process manager, over the socket that it hands down as PMI_FD:
// PMI-1 (mpiexec of MPICH and Intel MPI), PMI-2 (Slurm's srun --mpi=pmi2, and MPICH's).
//
// The socket belongs to one speaker. Where the program uses MPI itself, MPI_Init speaks there, and
// nothing of this file may be used: values are then exchanged by MPI.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "bootstrap/pmi_wire.h"

namespace coll {

// Requests in the words of PMI: keys and values without blanks, within the limits.
class Pmi {
 public:
  virtual ~Pmi() = default;
  virtual void put(const std::string& key, const std::string& value, const Deadline&) = 0;
  virtual std::string get(const std::string& key, const Deadline&) = 0;
  virtual void fence(const Deadline&) = 0;
  virtual void finalize(const Deadline&) = 0;

  std::size_t longest_value = 0;
};

// Both say hello and check the answer.
std::unique_ptr<Pmi> open_pmi1(PmiWire&& wire, const Deadline& deadline);
std::unique_ptr<Pmi> open_pmi2(PmiWire&& wire, int rank, int ranks, const Deadline& deadline);

}  // namespace coll
