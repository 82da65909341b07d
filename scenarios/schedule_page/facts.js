// SPDX-License-Identifier: Apache-2.0
// What stands above the figure: loops with their bounds, the legend, the hazards.

function figureOf(term, number, note) {
  return make('div', {}, make('dt', {}, term), make('dd', {}, String(number), note ? make('small', {}, ' ' + note) : null));
}

/** ": 48 instructions, 3 a cycle"; delay slots have none. */
function useOf({ instructions, slots }) {
  return instructions ? `: ${plural(instructions, 'instruction')}` + (slots ? `, ${slots} a cycle` : '') : '';
}

/** The sentence that says what holds the interval up. */
function blockerOf(loop) {
  const report = loop.report;
  if (loop.label.endsWith('.simple')) return 'Not pipelined: for fewer iterations than the pipelined loop needs.';
  if (report === null) return `No bound is known for this loop; its busiest unit has ${plural(loop.busiest, 'instruction')}.`;
  if (report.why_not) return `The scheduler does not follow this loop: ${report.why_not}.`;
  const bound = Math.max(report.resource_bound, report.recurrence_bound);
  const binding = report.resource_bound >= report.recurrence_bound
    ? report.resources.length ? report.resources[0].name + useOf(report.resources[0]) : 'resources'
    : `recurrence: ${report.recurrence.join('; then ')}`;
  const apart = report.independent_bound
    ? ` If accesses through different address registers never overlapped, it would be ${report.independent_bound}.` : '';
  if (loop.interval === bound) return `It cannot be shorter: the bound is reached (${binding}).${apart}`;
  const found = report.initiation_interval;
  const less = loop.interval > found ? `The scheduler finds ${found}, ${plural(loop.interval - found, 'cycle')} less. ` : '';
  const blocked = report.blocked.find(({ interval }) => interval < Math.min(found, loop.interval));
  if (found === bound) return `${less}The bound is ${bound} (${binding}).`;
  return less + (blocked ? `${plural(blocked.interval, 'cycle')} will not do: ${blocked.reason}.` : `The bound is ${bound} (${binding}).`);
}

function loopCard(schedule, loop) {
  const report = loop.report;
  const resource = report && !report.why_not ? report.resources[0] : null;
  const part = schedule.parts.find(({ kind, first }) => kind === 'loop' && first === loop.first);
  const use = make('div.use', { role: 'img', 'aria-label': 'Slots used in an iteration: ' + schedule.units.map((unit, u) => `${unit} ${loop.issues[u]}`).join(', ') });
  schedule.units.forEach((unit, u) => {
    const share = loop.issues[u] / loop.interval;
    use.append(make(share >= 1 ? 'div.full' : 'div', { title: `${unit}: ${loop.issues[u]} of ${loop.interval} slots` },
      make('div.bar', {}, make('i', { style: `height:${100 * share}%` })), unit));
  });
  return make('article.loop-card', { 'data-loop': loop.label },
    make('h3', {}, 'Loop ', make('code', {}, loop.label || '(no label)'), part ? `, ${plural(part.last - part.first, 'packet')}` : ''),
    make('dl', {},
      figureOf('Initiation interval', loop.interval, 'cycles'),
      resource ? figureOf('Resource bound', report.resource_bound, resource.name) : figureOf('Busiest unit', loop.busiest, 'cycles'),
      resource ? figureOf('Recurrence bound', report.recurrence_bound, report.recurrence_bound > 1 ? 'cycle of dependences' : 'none') : null,
      resource && report.pipelined && report.initiation_interval !== loop.interval ? figureOf('Scheduler', report.initiation_interval, 'cycles') : null),
    make('p.blocker', {}, blockerOf(loop)),
    resource ? make('details', {}, make('summary', {}, 'All bounds'),
      make('ul', {}, ...report.resources.map((bound) => make('li', {}, `${bound.cycles} cycles: ${bound.name}${useOf(bound)}`)),
        ...report.recurrence.map((edge) => make('li', {}, edge)),
        ...report.blocked.map(({ interval, reason }) => make('li', {}, `${interval} blocked by ${reason}`)))) : null,
    use);
}

function legend(schedule) {
  const list = make('ul.legend', { 'aria-label': 'Colours' });
  const used = new Set(schedule.cells.filter(({ unit }) => unit >= 0).map(({ chain }) => chain));
  schedule.chains.forEach((chain, c) => {
    if (!used.has(c)) return;
    list.append(make('li', { style: `--hue:${hueOf(c)}` }, make('span.chip', { 'aria-hidden': 'true' }, letterOf(c)),
      c === 0 ? 'addresses, counters, constants' : `chain ${letterOf(c)}: ${chain.name}`));
  });
  if (schedule.hazards.length) list.append(make('li', {}, make('span.chip.hazard-chip', { 'aria-hidden': 'true' }, '⚠'), 'hazard'));
  return list;
}

function findingsList(schedule, show) {
  const boxes = [];
  if (!schedule.hazards.length) boxes.push(make('p.fine', {}, 'No hazards found.'));
  else boxes.push(make('section.findings', { 'aria-label': 'Hazards' }, make('h3', {}, plural(schedule.hazards.length, 'hazard')), findingsItems(schedule, schedule.hazards, show)));
  if (schedule.warnings.length) {
    boxes.push(make('section.findings.warnings', { 'aria-label': 'Warnings' },
      make('h3', {}, plural(schedule.warnings.length, 'warning')),
      findingsItems(schedule, schedule.warnings, show)));
  }
  if (schedule.notes.length) {
    boxes.push(make('details.remarks', {}, make('summary', {}, `The check also has ${plural(schedule.notes.length, 'remark')} that ${schedule.notes.length === 1 ? 'needs' : 'need'} no change.`),
      findingsItems(schedule, schedule.notes, show)));
  }
  return make('div', {}, ...boxes);
}

const PLACES_SHOWN = 12;

/** A button a finding, which goes to its first instruction; what is said of many places is said once. */
function findingsItems(schedule, findings, show) {
  const alike = new Map();
  for (const finding of findings) {
    const sentence = sentenceOf(finding);
    alike.set(sentence, [...(alike.get(sentence) ?? []), finding]);
  }
  const button = (finding, text) => (finding.cells.length ? make('button', { type: 'button', onclick: () => show(finding.cells[0]) }, text) : text);
  return make('ol', {}, ...[...alike].map(([sentence, all]) => {
    if (all.length === 1) return make('li', {}, button(all[0], withPlace(all[0], sentence)), make('span.where', {}, whereOf(schedule, all[0])));
    const places = all.slice(0, PLACES_SHOWN).flatMap((finding, i) => [i ? ', ' : ' ', button(finding, finding.place)]);
    const more = all.length > PLACES_SHOWN ? `, and ${all.length - PLACES_SHOWN} more` : '';
    return make('li', {}, `${sentence} ${plural(all.length, 'time')}:`, ...places, make('span.where', {}, more));
  }));
}

/** " cycle 3 of loop ‘loop’", and how many more instructions the finding is about. */
function whereOf(schedule, { cells }) {
  if (!cells.length) return '';
  return ` ${schedule.placeOf(schedule.cells[cells[0]].packet)}` + (cells.length > 1 ? ` and ${plural(cells.length - 1, 'more place')}` : '');
}

/** "SSTW (line 6) reads the old R2: ... lands 1 cycle later." with what to do behind it. */
function sentenceOf(finding) {
  return finding.message + (finding.suggestion ? `; ${finding.suggestion}` : '') + '.';
}

/** With "line 6: " in front, unless the sentence says so itself. */
function withPlace({ place, message }, sentence) {
  return place && !message.includes(`(${place})`) ? `${place}: ${sentence}` : sentence;
}
