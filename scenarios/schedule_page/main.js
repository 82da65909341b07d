// SPDX-License-Identifier: Apache-2.0
// Puts the page together and ties pointing, focus and keys to the figure.

/** Pixels below which two schedules stand one above the other. */
const LEAST_FOR_TWO = 1000;

class Page {
  constructor() {
    this.current = null;  // {grid, id} that has the focus
    this.all = false;     // all arrows of the part
    this.run = null;
    this.grids = SCHEDULES.map((schedule) => new Grid(schedule));
    this.arrows = new Map(this.grids.map((grid) => [grid, new Arrows(grid)]));
    this.build();
    this.grids.forEach((grid) => this.listen(grid));
    if (DATA.run) this.run = new RunPanel(SCHEDULES[0], this.grids[0], DATA.run);
    else this.showHint();
    if (!DATA.run) Inspector.showNothing(SCHEDULES[0]);
    this.fit();
    this.keyboard = new Keyboard(this);
    this.openPart();
    this.listenToButtons();
  }

  build() {
    const [first, second] = SCHEDULES;
    byId('title').textContent = second ? `${first.name} and ${second.name}` : first.name;
    if (second && second.name === first.name) byId('title').textContent = first.name;
    byId('subtitle').textContent = `${first.role} for ${first.machine}, ${first.file}`;
    if (second) byId('subtitle').textContent = first.file === second.file ? `${first.role} beside ${second.role}, for ${first.machine}, ${first.file}`
      : `${first.role} (${first.file}) beside ${second.role} (${second.file}), for ${first.machine}`;
    const main = byId('schedules');
    SCHEDULES.forEach((schedule, index) => {
      const grid = this.grids[index];
      const last = schedule.packets[schedule.packets.length - 1];
      const cycles = last ? last.at + last.cycles : 0;
      main.append(make('section.schedule', { 'data-schedule': index, 'aria-label': `${schedule.name}, ${schedule.role}` },
        make('h2', {}, second ? this.headingOf(schedule) : 'Schedule', make('small', {}, ` ${plural(schedule.packets.length, 'packet')}, ${cycles} cycles from top to bottom`)),
        make('div.loops', {}, ...schedule.loops.map((loop) => loopCard(schedule, loop))),
        ...schedule.remarks.map((remark) => make('p.remarks', {}, remark)),
        index === 0 && DATA.run?.fault ? faultBox(schedule, DATA.run, () => this.goToFault()) : null,
        legend(schedule), findingsList(schedule, (id) => this.focus(grid, id)),
        schedule.arrows_complete ? null : make('p.notice', {}, 'The program has more paths than were followed: arrows and live registers may be missing.'),
        grid.figure));
    });
    byId('stack-button').hidden = SCHEDULES.length < 2;
    if (second) this.arrange(window.innerWidth < LEAST_FOR_TWO);
  }

  /** Of one of two: by its file, or by who made it. */
  headingOf({ file, role }) {
    return SCHEDULES[0].file === SCHEDULES[1].file ? role[0].toUpperCase() + role.slice(1) : file.replace(/^.*\//, '');
  }

  /** To the end of the recording, and to the packet that was stopped. */
  goToFault() {
    const [grid] = this.grids;
    const { fault } = DATA.run;
    this.run.goTo(this.run.replay.length);
    const [cell] = grid.schedule.cellsOf[fault.pc] ?? [];
    if (cell !== undefined) keepVisible(grid.cells[cell]);
  }

  showHint() {
    byId('run-bar').replaceChildren(make('span.hint', {}, 'To step through a run with its values, make the page with an exec spec: ',
      make('code', {}, `${DATA.command} --run SPEC.yaml`)), foldButton());
  }

  needsRun() { announce(`This page has no run; make it with ${DATA.command} --run SPEC.yaml`); }

  listen(grid) {
    const cellOf = (event) => event.target.closest?.('[data-cell]');
    grid.table.addEventListener('pointerover', (event) => {
      const cell = cellOf(event);
      if (cell) this.point(grid, Number(cell.dataset.cell));
    });
    grid.table.addEventListener('pointerleave', () => this.rest());
    grid.table.addEventListener('focusin', (event) => {
      const cell = cellOf(event);
      if (!cell) return;
      this.current = { grid, id: Number(cell.dataset.cell) };
      grid.makeCurrent(this.current.id);
      this.point(grid, this.current.id);
    });
    grid.table.addEventListener('click', (event) => {
      const cell = cellOf(event);
      if (cell) cell.focus({ preventScroll: true });
    });
  }

  point(grid, id) {
    for (const [other, arrows] of this.arrows) if (other !== grid) arrows.clear();
    const arrows = this.arrows.get(grid);
    if (this.all) arrows.showPart(grid.schedule.partOf[grid.schedule.cells[id].packet]);
    else arrows.show(id);
    Inspector.showCell(grid.schedule, id);
  }

  /** The pointer has gone: back to what has the focus. */
  rest() {
    if (this.current) return this.point(this.current.grid, this.current.id);
    for (const arrows of this.arrows.values()) if (!this.all) arrows.clear();
    return undefined;
  }

  focus(grid, id) {
    grid.cells[id].focus({ preventScroll: true });
    keepVisible(grid.cells[id]);
    return undefined;
  }

  leave() {
    document.activeElement?.blur();
    this.current = null;
    for (const arrows of this.arrows.values()) arrows.clear();
    if (this.run) this.run.show();
  }

  toggleArrows() {
    this.all = !this.all;
    byId('arrows-button').setAttribute('aria-pressed', String(this.all));
    if (this.current) return this.point(this.current.grid, this.current.id);
    for (const [grid, arrows] of this.arrows) {
      const part = grid.schedule.parts.findIndex(({ kind }) => kind === 'loop');
      if (this.all) arrows.showPart(Math.max(0, part));
      else arrows.clear();
    }
    return undefined;
  }

  toggleStack() {
    if (SCHEDULES.length < 2) return;
    const { current } = this;
    this.arrange(byId('schedules').classList.contains('pair'));
    this.fit();
    if (this.run) this.run.show();
    if (current) this.focus(current.grid, current.id);
    else this.rest();
  }

  /** Two schedules one above the other, with all columns and operands, or side by side. */
  arrange(stacked) {
    byId('schedules').classList.toggle('pair', !stacked);
    byId('stack-button').setAttribute('aria-pressed', String(stacked));
    for (const section of document.querySelectorAll('.schedule')) section.classList.toggle('compact', !stacked);
    const all = SCHEDULES[0].units.map((_, unit) => unit);
    for (const grid of this.grids) {
      this.arrows.get(grid).clear();
      grid.build(!stacked, stacked ? all : unitsUsed(SCHEDULES));
    }
  }

  fit() {
    fitDock();
    this.grids.forEach((grid) => grid.fit());
  }

  toggleTheme() {
    const root = document.documentElement;
    root.dataset.theme = root.dataset.theme === 'dark' ? 'light' : 'dark';
  }

  openPart() {
    if (!DATA.part) return;
    const [schedule] = SCHEDULES;
    const packet = schedule.labels[DATA.part];
    if (packet !== undefined && this.grids[0].rows[packet]) this.grids[0].rows[packet].scrollIntoView({ block: 'center' });
  }

  listenToButtons() {
    byId('arrows-button').addEventListener('click', () => this.toggleArrows());
    byId('stack-button').addEventListener('click', () => this.toggleStack());
    byId('theme-button').addEventListener('click', () => this.toggleTheme());
    byId('print-button').addEventListener('click', () => window.print());
    byId('help-button').addEventListener('click', () => byId('help').showModal());
    window.addEventListener('resize', () => { this.fit(); this.rest(); });
    window.addEventListener('beforeprint', () => { for (const arrows of this.arrows.values()) arrows.clear(); });
  }
}

document.documentElement.dataset.theme = window.matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
const page = new Page();
document.documentElement.dataset.ready = 'yes';
