// SPDX-License-Identifier: Apache-2.0
// The recorded run: the state in front of any of its packets, from what each step changed and a checkpoint every few steps.

const BLOCK = 64;  // bytes of memory that are replaced together
const CHECKPOINT_EVERY = 64;

function bytesOf(hex) {
  const bytes = new Uint8Array(hex.length / 2);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = parseInt(hex.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

class State {
  constructor(registers = new Map(), blocks = new Map(), flight = []) {
    this.registers = registers;  // name -> text of the data; what is not there is zero
    this.blocks = blocks;        // "sm 3" -> bytes that are never changed in place
    this.flight = flight;        // results between issue and landing, by issue
    this.landed = [];            // by the step that led here
    this.stored = [];
  }

  copy() { return new State(new Map(this.registers), new Map(this.blocks), [...this.flight]); }

  register(name) { return this.registers.get(name) ?? '0'; }

  /** The byte at an address, 0 where the run and its spec put nothing. */
  byte(space, address) {
    const block = this.blocks.get(`${space} ${Math.floor(address / BLOCK)}`);
    return block ? block[address % BLOCK] : 0;
  }

  store(space, address, bytes) {
    for (let done = 0; done < bytes.length;) {
      const at = address + done;
      const key = `${space} ${Math.floor(at / BLOCK)}`;
      const block = this.blocks.get(key)?.slice() ?? new Uint8Array(BLOCK);
      const count = Math.min(BLOCK - at % BLOCK, bytes.length - done);
      block.set(bytes.subarray(done, done + count), at % BLOCK);
      this.blocks.set(key, block);
      done += count;
    }
  }

  apply(step) {
    for (const [register, lands, value, cell, sequence] of step.i ?? []) {
      this.flight.push({ register, lands, value, cell, sequence, issued: step.c });
    }
    this.stored = (step.s ?? []).map(([space, address, hex]) => ({ space, address, bytes: bytesOf(hex) }));
    for (const { space, address, bytes } of this.stored) this.store(space, address, bytes);
    this.landed = [];
    for (const sequence of step.l ?? []) {
      const at = this.flight.findIndex((result) => result.sequence === sequence);
      const [result] = this.flight.splice(at, 1);
      this.registers.set(result.register, result.value);
      this.landed.push(result.register);
    }
  }
}

class Replay {
  constructor(run) {
    this.run = run;
    const state = new State();
    for (const [name, value] of Object.entries(run.registers)) state.registers.set(name, value);
    this.areas = run.memory.map(({ space, address, data }) => {
      const bytes = bytesOf(data);
      state.store(space, address, bytes);
      return { space, first: address, last: address + bytes.length };
    });
    this.checkpoints = [];
    run.steps.forEach((step, index) => {
      if (index % CHECKPOINT_EVERY === 0) this.checkpoints.push(state.copy());
      state.apply(step);
      for (const { space, address, bytes } of state.stored) this.addArea(space, address, address + bytes.length);
    });
    if (run.steps.length % CHECKPOINT_EVERY === 0) this.checkpoints.push(state.copy());
    this.position = 0;
    this.state = this.checkpoints[0].copy();
  }

  addArea(space, first, last) {
    const near = this.areas.find((area) => area.space === space && first <= area.last + 256 && area.first <= last + 256);
    if (!near) this.areas.push({ space, first, last });
    else {
      near.first = Math.min(near.first, first);
      near.last = Math.max(near.last, last);
    }
  }

  get length() { return this.run.steps.length; }

  /** The step that comes next; null behind the last. */
  get next() { return this.run.steps[this.position] ?? null; }

  /** The cycle in which the next packet issues. */
  get cycle() { return this.next ? this.next.c : this.run.recorded; }

  goTo(position) {
    const target = Math.max(0, Math.min(this.length, position));
    if (target < this.position || target - this.position > CHECKPOINT_EVERY) {
      const checkpoint = Math.floor(Math.max(0, target - 1) / CHECKPOINT_EVERY);
      this.state = this.checkpoints[checkpoint].copy();
      this.position = checkpoint * CHECKPOINT_EVERY;
    }
    for (; this.position < target; ++this.position) this.state.apply(this.run.steps[this.position]);
  }
}
