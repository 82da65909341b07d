// SPDX-License-Identifier: Apache-2.0
// Stepping through the recorded run: the bar, what issues, results in flight, registers and memory.

class RunPanel {
  constructor(schedule, grid, run) {
    this.schedule = schedule;
    this.grid = grid;
    this.replay = new Replay(run);
    this.run = run;
    this.view = 'f32';
    this.shown = 'packet';  // which registers
    this.open = new Set();  // vectors shown with all elements
    this.timer = null;
    this.area = 0;
    this.address = this.replay.areas.length ? this.replay.areas[0].first : 0;
    this.follow = true;
    this.build();
    this.show();
  }

  build() {
    const button = (name, label, text, action) => make('button', { type: 'button', 'data-action': name, 'aria-label': label, title: label, onclick: action }, text);
    this.slider = make('input', { type: 'range', min: 0, max: this.replay.length, value: 0, 'aria-label': 'Packet of the run', oninput: () => this.goTo(Number(this.slider.value)) });
    this.output = make('output', { 'aria-live': 'off' });
    this.playButton = button('play', 'Play or stop (p)', 'Play', () => this.play());
    this.views = make('span.views', { role: 'group', 'aria-label': 'Values as' },
      ...VIEWS.map((view) => make('button', { type: 'button', 'data-view': view, onclick: () => this.setView(view) }, VIEW_NAMES[view])));
    byId('run-bar').replaceChildren(
      button('start', 'To the start', '|◀', () => this.goTo(0)), button('back', 'One packet back ([)', '◀', () => this.move(-1)),
      button('forward', 'One packet forward (])', '▶', () => this.move(1)), button('end', 'To the end', '▶|', () => this.goTo(this.replay.length)),
      this.playButton, this.slider, this.output, this.views, foldButton());
    byId('dock').classList.add('with-run');
    for (const id of ['flight', 'values', 'memory']) byId(id).hidden = false;
  }

  move(by) { this.goTo(this.replay.position + by); }

  goTo(position) {
    this.replay.goTo(position);
    this.show();
    announce(this.sentence());
  }

  play() {
    if (this.timer !== null) {
      clearInterval(this.timer);
      this.timer = null;
    } else {
      this.timer = setInterval(() => (this.replay.position < this.replay.length ? this.move(1) : this.play()), 350);
    }
    this.playButton.textContent = this.timer === null ? 'Play' : 'Stop';
  }

  setView(view) {
    this.view = view;
    this.show();
  }

  sentence() {
    const { replay, run, schedule } = this;
    if (!replay.next) {
      if (run.cut) return `cycle ${run.recorded}: the recording ends here; the run goes on to cycle ${run.cycles} (--run-cycles)`;
      return run.fault ? faultTitle(run) : `done in ${plural(run.cycles, 'cycle')}`;
    }
    return `cycle ${replay.cycle} of ${run.cycles}${run.cut ? `, ${run.recorded} recorded` : ''}: ${schedule.placeOf(replay.next.p)}`;
  }

  show() {
    const { replay, run, schedule } = this;
    const next = replay.next;
    this.slider.value = replay.position;
    this.output.textContent = this.sentence();
    for (const button of this.views.children) button.setAttribute('aria-pressed', String(button.dataset.view === this.view));
    if (next) this.grid.setNow(next.p);
    else this.grid.setNow(run.fault && !run.cut ? run.fault.pc : null, true);
    if (replay.state.stored.length && this.follow) this.lookAt(replay.state.stored[0]);
    this.showPacket(next);
    this.showFlight();
    this.showValues();
    this.showMemory();
    const packet = next ? next.p : run.steps.length ? run.steps[run.steps.length - 1].p : 0;  // at the end that of the last
    const cells = schedule.cellsOf[packet].map((id) => schedule.cells[id]);
    Inspector.showLive(schedule, packet, new Set(cells.flatMap((cell) => cell.reads)), new Set(cells.flatMap((cell) => cell.writes.map(([register]) => register))));
  }

  showPacket(next) {
    if (!next) {
      const { fault, cut } = this.run;
      byId('inspector').replaceChildren(make('h3', {}, cut ? 'End of the recording' : 'End of the run'),
        ...(fault && !cut ? [make('p.old-read', {}, faultTitle(this.run)), ...faultLines(this.schedule, fault)] : [make('p.instruction', {}, this.sentence())]));
      return;
    }
    const { schedule, replay } = this;
    const old = (next.o ?? []).map(([register, sequence]) => {
      const newer = replay.state.flight.find((result) => result.sequence === sequence);
      return make('p.old-read', {}, `⚠ reads the old ${register}: ` + (newer
        ? `the result of ${schedule.cells[newer.cell].operation} lands ${plural(newer.lands - replay.cycle, 'cycle')} later` : 'a newer result is in flight'));
    });
    byId('inspector').replaceChildren(make('h3', {}, `Issues in cycle ${replay.cycle}`, make('span', {}, schedule.packets[next.p].line ? `line ${schedule.packets[next.p].line}` : '')), ...old,
      make('table.values', {}, make('tbody', {}, ...schedule.cellsOf[next.p].map((id) => {
        const cell = schedule.cells[id];
        return make('tr', {}, make('th', {}, cell.unit >= 0 ? schedule.units[cell.unit] : ''), make('td', {}, cell.text.replace(/\.M\d/, '')));
      }))));
  }

  showFlight() {
    const { replay, schedule } = this;
    const flight = [...replay.state.flight].sort((a, b) => a.lands - b.lands);
    const rows = flight.map((result) => {
      const left = result.lands - replay.cycle, all = result.lands - result.issued;
      return make('tr', { title: `${schedule.cells[result.cell].text}, issued in cycle ${result.issued}` }, make('th', {}, result.register),
        make('td.number', {}, `+${left}`), make('td', {}, make('span.meter', { 'aria-hidden': 'true' }, make('i', { style: `width:${100 * (all - left) / all}%` }))),
        make('td', {}, schedule.cells[result.cell].operation));
    });
    byId('flight').replaceChildren(make('h3', {}, plural(flight.length, 'result') + ' in flight'),
      make('table.values', {}, make('tbody', {}, ...rows)));
  }

  registersShown() {
    const { replay, schedule } = this;
    if (this.shown !== 'packet') return schedule.names.filter((name) => (this.shown === 'A' ? /^(A|O|SV)R/.test(name) : name.replace(/\d+/, '') === this.shown));
    const names = new Set(replay.state.landed);
    for (const id of replay.next ? schedule.cellsOf[replay.next.p] : []) {
      const cell = schedule.cells[id];
      for (const name of [...cell.reads, ...cell.writes.map(([register]) => register)]) names.add(name);
    }
    return schedule.names.filter((name) => names.has(name));
  }

  showValues() {
    const { replay } = this;
    const landed = new Set(replay.state.landed);
    const choice = make('select', { 'aria-label': 'Registers shown', onchange: (event) => { this.shown = event.target.value; this.showValues(); byId('values').querySelector('select').focus(); } },
      ...[['packet', 'of this packet'], ['R', 'all R'], ['VR', 'all VR'], ['A', 'AR, OR, SVR']].map(([value, text]) =>
        make('option', { value, selected: value === this.shown }, text)));
    const rows = this.registersShown().map((name) => {
      const value = replay.state.register(name);
      const isVector = name.startsWith('VR');
      const label = isVector ? make('button', { type: 'button', title: 'All elements, or fewer', 'aria-expanded': String(this.open.has(name)),
        onclick: () => { this.open.has(name) ? this.open.delete(name) : this.open.add(name); this.showValues(); } }, name) : name;
      const shown = isVector && this.open.has(name)
        ? lanesOf(value.length > 1 && value[0] !== '=' && value.length <= 16 ? '=' + value : value).flatMap((lane) => elements(lane, this.view)).map((element) => make('span.element', {}, element))
        : [summary(isVector && value.length <= 16 && value[0] !== '=' ? '=' + value : value, name, this.view)];
      return make(landed.has(name) ? 'tr.changed' : 'tr', { 'data-register': name, title: landed.has(name) ? 'has just landed' : null }, make('th', {}, label), make('td', {}, ...shown));
    });
    byId('values').replaceChildren(make('h3', {}, 'Registers', choice), make('table.values', {}, make('tbody', {}, ...rows)));
  }

  lookAt({ space, address }) {
    const at = this.replay.areas.findIndex((area) => area.space === space && area.first <= address && address < area.last);
    if (at < 0) return;
    this.area = at;
    this.address = Math.max(this.replay.areas[at].first, address - address % 16);
  }

  showMemory() {
    const { replay } = this;
    const area = replay.areas[this.area];
    if (!area) {
      byId('memory').replaceChildren(make('h3', {}, 'Memory'), make('p', {}, 'The run starts with empty memories and has stored nothing.'));
      return;
    }
    const size = BYTES_OF_VIEW[this.view], rowBytes = 16, rows = [];
    const choice = make('select', { 'aria-label': 'Memory shown', onchange: (event) => { this.area = Number(event.target.value); this.address = replay.areas[this.area].first; this.follow = false; this.showMemory(); byId('memory').querySelector('select').focus(); } },
      ...replay.areas.map(({ space, first, last }, index) => make('option', { value: index, selected: index === this.area }, `${space.toUpperCase()} 0x${first.toString(16)}, ${last - first} bytes`)));
    const written = (address) => replay.state.stored.some((store) => store.space === area.space && address < store.address + store.bytes.length && store.address < address + size);
    for (let row = this.address; row < Math.min(area.last, this.address + 16 * rowBytes); row += rowBytes) {
      const values = [];
      for (let at = row; at < Math.min(area.last, row + rowBytes); at += size) {
        let bits = 0n;
        for (let i = size - 1; i >= 0; --i) bits = bits << 8n | BigInt(replay.state.byte(area.space, at + i));
        values.push(make(written(at) ? 'span.element.changed' : 'span.element', {}, this.view === 'hex' ? bits.toString(16).padStart(2 * size, '0') : elements(bits, this.view)[0]));
      }
      rows.push(make('tr', {}, make('th', {}, '0x' + row.toString(16)), make('td', {}, ...values)));
    }
    const page = (by) => { this.follow = false; this.address = Math.max(area.first, Math.min(area.last - 1 - (area.last - 1 - area.first) % 16, this.address + by * 16 * rowBytes)); this.showMemory(); };
    byId('memory').replaceChildren(make('h3', {}, 'Memory', choice,
      make('button', { type: 'button', 'aria-label': 'Lower addresses', onclick: () => page(-1) }, '▲'), make('button', { type: 'button', 'aria-label': 'Higher addresses', onclick: () => page(1) }, '▼'),
      make('button', { type: 'button', 'aria-pressed': String(this.follow), title: 'Go where the run stores', onclick: () => { this.follow = !this.follow; this.showMemory(); } }, 'follow')),
      this.run.memory_left_out ? make('p.old-read', {}, `${this.run.memory_left_out} bytes of the spec's memory are not in this page and read as zero here.`) : '',
      make('table.values', {}, make('tbody', {}, ...rows)));
  }
}

/** "stopped by a fault in cycle 20628". */
function faultTitle({ status, fault }) {
  return status === 'max_cycles' ? `stopped in cycle ${fault.cycle}, at the limit of the spec` : `stopped by a fault in cycle ${fault.cycle}`;
}

/** Where a run was stopped and why: place, packet, sentence. */
function faultLines(schedule, fault) {
  return [make('p', {}, `${schedule.packetName(fault.pc)}, ${fault.place}: `, make('code', {}, fault.packet)), make('p', {}, fault.message)];
}

/** What stands above the figure when the run did not come to its end; `show` goes there. */
function faultBox(schedule, run, show) {
  const { fault } = run;
  const recorded = run.cut ? `It is not in this page, whose recording ends in cycle ${run.recorded}: --run-cycles ${fault.cycle + 1} records it.` : null;
  return make('section.findings.fault', { 'aria-label': 'Fault' }, make('h3', {}, `The run was ${faultTitle(run)}`), ...faultLines(schedule, fault),
    recorded ? make('p', {}, recorded) : null, make('p', {}, make('button', { type: 'button', onclick: show }, 'Go there')));
}

function foldButton() {
  const button = make('button', { type: 'button', 'aria-expanded': 'true', 'aria-controls': 'panels', id: 'fold-button', title: 'Fold the panel, or open it (d)', onclick: () => toggleDock() }, '▾');
  return button;
}

function toggleDock() {
  const folded = byId('dock').classList.toggle('folded');
  byId('fold-button').textContent = folded ? '▴' : '▾';
  byId('fold-button').setAttribute('aria-expanded', String(!folded));
  fitDock();
}

/** Leaves room below the figure for the panel. */
function fitDock() {
  document.documentElement.style.setProperty('--dock', `${byId('dock').offsetHeight}px`);
}
