// SPDX-License-Identifier: Apache-2.0
// What mpirun of OpenMPI tells its processes, known before MPI is initialised; ranks.h is for talking to the others.
#pragma once

namespace mtsim::runtime::mpirun {

/// Whether it started this process; without it MPI is never initialised, which takes 0.3 s.
bool is_there();
/// How many of its processes share this host; 1 without mpirun.
int ranks_on_this_host();
/// This process's number; 0 without mpirun.
int rank();
/// Whether rank 0 has the same command line, so that it finds the same wrong with it and says so.
bool repeats_rank_0();

}  // namespace mtsim::runtime::mpirun
