"""What the browser does by itself on every tab: sort and filter the tables, show where they go on, and keep folded what
stands below them; hand the focus on when the button that has it goes away."""

from __future__ import annotations

TABLES = """<script>
(() => {
  const wishes = {};  // by the table's name, so that they outlive the HTML, which is replaced while a table grows
  const wish = table => wishes[table.dataset.name] ??= {column: null, down: false, filter: '', folded: false};
  const words = text => text.toLowerCase().split(/[^\\p{L}\\p{N}.+-]+/u).filter(Boolean);
  const value = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent;

  function order(one, other, {column, down}, number) {
    const [a, b] = [value(one, column), value(other, column)];
    if (!a || !b) return !a - !b;  // what has no value comes last, whichever way
    return (down ? -1 : 1) * (number ? a - b : a.localeCompare(b));
  }

  function sort(table, rows) {
    const chosen = wish(table), heads = [...table.querySelectorAll('th')], head = heads[chosen.column];
    for (const each of heads) each.removeAttribute('aria-sort');
    head?.setAttribute('aria-sort', chosen.down ? 'descending' : 'ascending');
    const number = head?.classList.contains('qa-number');
    rows.sort((a, b) => (head ? order(a, b, chosen, number) : 0) || a.dataset.place - b.dataset.place);
    table.querySelector('tbody').append(...rows);
  }

  function filter(table, rows) {
    const box = table.querySelector('input'), wanted = words(wish(table).filter);
    if (box.value !== wish(table).filter) box.value = wish(table).filter;
    for (const row of rows) {
      const found = words([...row.cells].map(cell => cell.textContent).join(' '));
      row.hidden = !wanted.every(word => found.some(each => each.startsWith(word)));
    }
    const shown = rows.filter(row => !row.hidden).length, said = table.querySelector('.qa-shown');
    said.textContent = wanted.length ? `${shown} of ${rows.length} shown` : said.dataset.whole;
    table.querySelector('.qa-nothing').hidden = shown > 0 || !rows.length;
  }

  function cue(table) {
    const box = table.querySelector('.qa-scroll'), frame = box.parentElement, corner = table.querySelector('th');
    const right = box.scrollWidth - box.clientWidth - box.scrollLeft;
    const below = box.scrollHeight - box.clientHeight - box.scrollTop;
    const more = {left: box.scrollLeft, right, above: box.scrollTop, below};
    for (const [side, pixels] of Object.entries(more)) frame.toggleAttribute(`data-${side}`, pixels > 1);
    frame.style.setProperty('--first', `${corner.offsetWidth}px`);
    frame.style.setProperty('--head', `${corner.offsetHeight}px`);
  }

  const resized = new ResizeObserver(entries => entries.forEach(each => cue(each.target.closest('.qa-table'))));

  function arrange(table) {
    const rows = [...table.querySelector('tbody').rows];
    if (!('arranged' in table.dataset)) rows.forEach((row, place) => { row.dataset.place = place; });
    table.dataset.arranged = '';
    sort(table, rows);
    filter(table, rows);
    const ran = table.parentElement.querySelector('.qa-ran');
    if (ran) ran.open = !wish(table).folded;
    cue(table);
    resized.observe(table.querySelector('.qa-scroll'));
  }

  document.addEventListener('click', ({target}) => {
    const head = target.closest('.qa-table th button')?.parentElement, table = head?.closest('.qa-table');
    if (!table) return;
    const now = wish(table), same = now.column === head.cellIndex;
    Object.assign(now, {column: same && now.down ? null : head.cellIndex, down: same && !now.down});
    arrange(table);
  });
  document.addEventListener('click', ({target}) => {
    const ran = target.closest('.qa-ran summary')?.parentElement;
    if (ran) wish(ran.parentElement.querySelector('.qa-table')).folded = ran.open;  // it is about to change
  });
  document.addEventListener('input', ({target}) => {
    const table = target.closest('.qa-tools')?.closest('.qa-table');
    if (!table) return;
    wish(table).filter = target.value;
    arrange(table);
  });
  document.addEventListener('scroll', ({target}) => {
    const table = target.closest?.('.qa-table');
    if (table) cue(table);
  }, true);
  // Gradio, when it replaces the HTML, takes away the attributes that came from here.
  new MutationObserver(() => document.querySelectorAll('.qa-table:not([data-arranged])').forEach(arrange))
    .observe(document, {subtree: true, childList: true, attributes: true, attributeFilter: ['data-arranged']});
})();
</script>"""
"""For the page's head. A column's button sorts it up, then down, then not at all; every word of the filter must begin
a word of the row. A frame has ``data-left``, ``-right``, ``-above`` or ``-below`` where its table goes on.
"""
FOCUS = """<script>
(() => {
  const heirs = {'qa-cancel': 'qa-ask', 'qa-own-stop': 'qa-own-load', 'qa-bench-stop': 'qa-bench-start',
                 'qa-fastest-stop': 'qa-fastest-start', 'qa-accuracy-stop': 'qa-accuracy-start'};
  let watched = null;
  document.addEventListener('focusin', ({target}) => {
    watched?.disconnect();
    if (!(target.id in heirs)) return;
    watched = new MutationObserver(() => {
      const heir = document.getElementById(heirs[target.id]);
      if (target.checkVisibility() || !heir || heir.disabled) return;
      watched.disconnect();
      // The browser takes the focus from what is hidden only with the next frame.
      if ([target, document.body].includes(document.activeElement)) heir.focus({preventScroll: true});
    });
    watched.observe(document.body, {subtree: true, childList: true, attributes: true});
  });
  // Who turns to what takes no focus has left the button too.
  document.addEventListener('pointerdown', () => watched?.disconnect());
})();
</script>"""
"""For the page's head. Who ends work by the keyboard, or hears the page, goes on from what starts it again, not from
the top of the page (WCAG 2.4.3)."""
