// SPDX-License-Identifier: Apache-2.0
// The panel's two halves that need no run: the instruction pointed at, and the registers that are live at its cycle.

const Inspector = {
  /** Everything about one instruction. */
  showCell(schedule, id) {
    const cell = schedule.cells[id];
    const operation = schedule.operations[cell.operation];
    const unit = cell.unit >= 0 ? schedule.units[cell.unit] : 'all units';
    const lines = [];
    for (const finding of schedule.findingsOf[id]) lines.push(make(finding.hazard ? 'li.hazard' : 'li', {}, sentenceOf(finding)));
    const into = merged(schedule.into[id]);
    for (const arrow of into) lines.push(make('li', {}, ...this.readSentence(schedule, id, arrow)));
    for (const [register, cycles] of cell.writes) lines.push(make('li', {}, ...this.writeSentence(schedule, id, register, cycles)));
    byId('inspector').replaceChildren(
      make('h3', {}, `${unit}, ${schedule.placeOf(cell.packet)}`, make('span', {}, cell.line ? `line ${cell.line}` : '')),
      make('p.instruction', {}, cell.text),
      make('p.what', {}, `${operation.source} (${operation.grade})`),
      make('ul', {}, ...lines));
    this.showLive(schedule, cell.packet, new Set(cell.reads), new Set(cell.writes.map(([register]) => register)));
  },

  readSentence(schedule, id, { from, register, latency, distance, wraps }) {
    if (from < 0) {
      const parameter = schedule.parameters.find((one) => one.register === register);
      return ['reads ', make('code', {}, register), parameter ? ` from the caller: ${parameter.name}, a ${parameter.kind}` : ' as the caller left it'];
    }
    const producer = schedule.cells[from];
    const spare = distance - latency;
    return ['reads ', make('code', {}, register), ` of ${producer.operation} in ${schedule.placeOf(producer.packet)}`,
      `${wraps ? ' of the pass before' : ''}: there after ${latency}, read after ${distance}`, spare ? `, ${spare} to spare` : ', just in time'];
  },

  writeSentence(schedule, id, register, cycles) {
    const uses = schedule.outOf[id].filter((arrow) => arrow.register === register);
    const nearest = uses.length ? Math.min(...uses.map(({ distance }) => distance)) : 0;
    return ['writes ', make('code', {}, register), `, readable ${plural(cycles, 'cycle')} later`,
      uses.length ? `; read by ${plural(uses.length, 'instruction')}, first after ${nearest}` : '; nothing reads it'];
  },

  showLive(schedule, packet, reads = new Set(), writes = new Set()) {
    const map = make('div.map', {});
    const counts = schedule.liveCounts(packet);
    const test = liveTest(schedule.packets[packet].live);
    let number = 0;
    const text = [];
    schedule.registers.forEach(({ file, count }, f) => {
      const squares = make('div.squares', { role: 'img', 'aria-label': `${file}: ${counts[f]} of ${count} live` });
      for (let i = 0; i < count; ++i, ++number) {
        const name = file + i;
        const live = test(number);
        squares.append(make('i', { title: name + (live ? ': live' : ': free'), 'data-register': name,
          class: [live ? 'live' : '', reads.has(name) ? 'read' : '', writes.has(name) ? 'write' : ''].join(' ').trim() || null }));
      }
      map.append(make('span', {}, file), squares);
      if (counts[f]) text.push(`${counts[f]} of ${count} ${file}`);
    });
    byId('register-map').replaceChildren(make('h3', {}, `Live in ${schedule.placeOf(packet)}`), map,
      make('p', {}, `${text.join(', ') || 'none'}. Green: read here; orange: written.`));
  },

  showNothing(schedule) {
    byId('inspector').replaceChildren(make('h3', {}, 'Instruction'),
      make('p.what', {}, 'Point at an instruction, or go to it with Tab and the arrow keys: what it reads and when that was ready, who reads its result, and which registers are live.'));
    this.showLive(schedule, 0);
  },
};
