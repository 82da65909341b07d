// SPDX-License-Identifier: Apache-2.0
// The data of the page, with the indices that everything else looks up.
'use strict';

const DATA = JSON.parse(document.getElementById('data').textContent);

/** An arrow of the data, [producer, consumer, register, latency, distance, wraps], with names. */
function arrowOf([from, to, register, latency, distance, wraps]) {
  return { from, to, register, latency, distance, wraps };
}

/** Digits of four registers each, R0-R3 first, as a function of the register's number. */
function liveTest(hex) {
  return (number) => (parseInt(hex[number >> 2], 16) >> (number & 3) & 1) === 1;
}

class Schedule {
  constructor(data, number) {
    Object.assign(this, data);
    this.number = number;
    this.arrows = data.arrows.map(arrowOf);
    this.into = data.cells.map(() => []);
    this.outOf = data.cells.map(() => []);
    for (const arrow of this.arrows) {
      this.into[arrow.to].push(arrow);
      if (arrow.from >= 0) this.outOf[arrow.from].push(arrow);
    }
    this.cellsOf = data.packets.map(() => []);
    data.cells.forEach((cell, id) => this.cellsOf[cell.packet].push(id));
    this.partOf = [];
    data.parts.forEach((part, index) => this.partOf.push(...Array(part.last - part.first).fill(index)));
    this.labelsOf = new Map();
    for (const [label, packet] of Object.entries(data.labels)) {
      this.labelsOf.set(packet, [...(this.labelsOf.get(packet) ?? []), label]);
    }
    this.findingsOf = data.cells.map(() => []);
    for (const finding of data.findings) for (const id of finding.cells) this.findingsOf[id].push(finding);
    this.hazards = data.findings.filter((finding) => finding.hazard);
    this.warnings = data.findings.filter((finding) => !finding.hazard && finding.severity === 'warning');
    this.notes = data.findings.filter((finding) => !finding.hazard && finding.severity !== 'warning');
    this.numbers = new Map();
    for (const { file, count } of data.registers) {
      for (let i = 0; i < count; ++i) this.numbers.set(file + i, this.numbers.size);
    }
    this.names = [...this.numbers.keys()];
  }

  /** The cycle of a packet within its part: what Table I counts. */
  cycleInPart(packet) {
    return this.packets[packet].at - this.packets[this.parts[this.partOf[packet]].first].at;
  }

  isWarned(id) { return this.findingsOf[id].some((finding) => !finding.hazard && finding.severity === 'warning'); }

  isHazard(id) { return this.findingsOf[id].some((finding) => finding.hazard); }

  isLive(packet, register) { return liveTest(this.packets[packet].live)(this.numbers.get(register)); }

  /** [8, 36] of "R" and "VR": how many hold a value that is still needed. */
  liveCounts(packet) {
    const test = liveTest(this.packets[packet].live);
    let number = 0;
    return this.registers.map(({ count }) => {
      let live = 0;
      for (let i = 0; i < count; ++i) live += test(number++) ? 1 : 0;
      return live;
    });
  }

  /** "cycle 3 of loop": where a packet stands, for sentences. */
  placeOf(packet) {
    const part = this.parts[this.partOf[packet]];
    return `cycle ${this.cycleInPart(packet)} of ${this.nameOf(part)}`;
  }

  /** "packet 15, cycle 3 of loop ‘loop’"; behind the last packet there is no cycle. */
  packetName(packet) { return `packet ${packet}` + (packet < this.packets.length ? `, ${this.placeOf(packet)}` : ', behind the last'); }

  nameOf(part) {
    const loop = part.loop >= 0 ? `‘${this.loops[part.loop].label}’` : '';
    switch (part.kind) {
      case 'loop': return `loop ${loop}`;
      case 'prologue': return `the prologue of ${loop}`;
      case 'epilogue': return `the epilogue of ${loop}`;
      case 'between': return `the code behind ${loop}`;
      default: return (this.labelsOf.get(part.first) ?? [])[0] ?? 'the program';
    }
  }
}

const SCHEDULES = DATA.schedules.map((data, number) => new Schedule(data, number));
