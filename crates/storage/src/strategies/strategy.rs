//! A table's strategy: which class it is, and its state. SSTables that are repaired and those that
//! are not never meet: each group has a strategy of its own (`CompactionStrategyManager`).

use schema::{CompactionClass, CompactionParams};

use super::choice::{Candidate, Choice, Given, Reason, View};
use super::leveled::Leveled;
use super::size_tiered::{SizeTiered, ids};
use super::time_window::TimeWindow;
use super::tombstones::TombstoneOptions;
use super::unified::Unified;

/// One group's strategy.
#[derive(Clone, Debug)]
enum Class {
    SizeTiered(SizeTiered),
    Leveled(Box<Leveled>),
    TimeWindow(TimeWindow),
    Unified(Unified),
}

impl Class {
    fn new(params: &CompactionParams, now_millis: i64) -> Self {
        let given = Given(params);
        match params.kind {
            CompactionClass::Leveled => Self::Leveled(Box::new(Leveled::new(given))),
            CompactionClass::TimeWindow => Self::TimeWindow(TimeWindow::new(given)),
            CompactionClass::Unified => Self::Unified(Unified::new(given, now_millis)),
            // a class that nobody knows here has its files kept together as good as any
            CompactionClass::SizeTiered | CompactionClass::Custom => {
                Self::SizeTiered(SizeTiered::new(given))
            }
        }
    }

    fn next(&mut self, mine: &[&Candidate], view: &View<'_>) -> Option<Choice> {
        match self {
            Self::SizeTiered(strategy) => strategy.next(mine, view),
            Self::Leveled(strategy) => strategy.next(mine, view),
            Self::TimeWindow(strategy) => strategy.next(mine, view),
            Self::Unified(strategy) => strategy.next(mine, view),
        }
    }

    fn pending(&self, mine: &[&Candidate], view: &View<'_>) -> usize {
        match self {
            Self::SizeTiered(strategy) => strategy.pending(mine),
            Self::Leveled(strategy) => strategy.pending(mine),
            Self::TimeWindow(strategy) => strategy.pending(mine),
            Self::Unified(strategy) => strategy.pending(mine, view),
        }
    }

    fn major(&self, mine: &[&Candidate], view: &View<'_>, split: bool) -> Vec<Choice> {
        match self {
            Self::SizeTiered(strategy) => vec![strategy.major(mine, split)],
            Self::Leveled(strategy) => vec![strategy.major(mine)],
            Self::TimeWindow(_) => vec![Choice::merge(ids(mine), Reason::Major)],
            Self::Unified(strategy) => strategy.major(mine, view),
        }
    }

    fn user_defined(&self, tables: &[&Candidate], view: &View<'_>) -> Choice {
        match self {
            Self::SizeTiered(_) | Self::TimeWindow(_) => {
                Choice::merge(ids(tables), Reason::UserDefined)
            }
            Self::Leveled(strategy) => strategy.user_defined(tables),
            Self::Unified(strategy) => strategy.task(ids(tables), view, Reason::UserDefined),
        }
    }
}

/// A table's strategy.
#[derive(Clone, Debug)]
pub struct Strategy {
    params: CompactionParams,
    /// Of repaired SSTables, and of the others.
    groups: [Class; 2],
}

impl Strategy {
    /// The one that a table's parameters name, knowing of nothing yet.
    pub fn new(params: &CompactionParams, now_millis: i64) -> Self {
        Self::of(params, None, now_millis)
    }

    /// The same, with other thresholds than those that the parameters name.
    pub(crate) fn of(
        params: &CompactionParams,
        thresholds: Option<(u32, u32)>,
        now_millis: i64,
    ) -> Self {
        let mut asked = params.clone();
        if let Some((min, max)) = thresholds {
            for (name, value) in [("min_threshold", min), ("max_threshold", max)] {
                asked.options.insert(name.to_owned(), value.to_string());
            }
        }
        let groups = [Class::new(&asked, now_millis), Class::new(&asked, now_millis)];
        Self { params: params.clone(), groups }
    }

    /// What it was made of.
    pub fn params(&self) -> &CompactionParams {
        &self.params
    }

    fn group<'a>(view: &View<'a>, repaired: bool) -> Vec<&'a Candidate> {
        view.tables.iter().filter(|table| (table.repaired_at != 0) == repaired).collect()
    }

    /// What is to be compacted next, if anything is worth it.
    pub fn next(&mut self, view: &View<'_>) -> Option<Choice> {
        let mut order = Vec::new();
        for (class, repaired) in self.groups.iter_mut().zip([true, false]) {
            let mine = Self::group(view, repaired);
            if !mine.is_empty() {
                order.push((class.pending(&mine, view), class, mine));
            }
        }
        // the group with more to do first
        order.sort_by_key(|(pending, _, _)| std::cmp::Reverse(*pending));
        order.into_iter().find_map(|(_, class, mine)| class.next(&mine, view))
    }

    /// About how many tasks are to be done.
    pub fn pending(&self, view: &View<'_>) -> usize {
        let pending = |(class, repaired): (&Class, bool)| {
            let mine = Self::group(view, repaired);
            if mine.is_empty() { 0 } else { class.pending(&mine, view) }
        };
        self.groups.iter().zip([true, false]).map(pending).sum()
    }

    /// Everything into one, or as few as the strategy has: `nodetool compact`, with
    /// `--split-output`.
    pub fn major(&self, view: &View<'_>, split: bool) -> Vec<Choice> {
        let mut choices = Vec::new();
        for (class, repaired) in self.groups.iter().zip([true, false]) {
            let mine = Self::group(view, repaired);
            if !mine.is_empty() {
                choices.extend(class.major(&mine, view, split));
            }
        }
        choices
    }

    /// These SSTables together: `nodetool compact --user-defined`.
    pub fn user_defined(&self, view: &View<'_>, wanted: &[u64]) -> Vec<Choice> {
        let mut choices = Vec::new();
        for (class, repaired) in self.groups.iter().zip([true, false]) {
            let mut mine = Self::group(view, repaired);
            mine.retain(|table| wanted.contains(&table.id));
            if !mine.is_empty() {
                choices.push(class.user_defined(&mine, view));
            }
        }
        choices
    }

    /// Notes that a task is done: what went in, and what came out.
    pub fn replaced(&mut self, removed: &[Candidate], added: &[Candidate]) {
        let Some(lowest) = removed.iter().map(|table| table.level).min() else { return };
        let repaired = removed.iter().all(|table| table.repaired_at != 0);
        let [of_repaired, of_others] = &mut self.groups;
        let class = if repaired { of_repaired } else { of_others };
        if let Class::Leveled(strategy) = class {
            strategy.replaced(lowest, added);
        }
    }

    /// SSTables that cannot stay in the level that their metadata name: they go to level 0.
    pub fn displaced(&self, view: &View<'_>) -> Vec<u64> {
        if !matches!(self.groups.first(), Some(Class::Leveled(_))) {
            return Vec::new();
        }
        let of = |repaired| Leveled::levels(&Self::group(view, repaired)).displaced();
        [true, false].into_iter().flat_map(of).collect()
    }

    /// Those of some tables of which nothing is needed any more: they are dropped, not compacted.
    pub fn expired(&self, view: &View<'_>, inputs: &[u64]) -> Vec<u64> {
        let options = TombstoneOptions::new(Given(&self.params));
        let is_input = |table: &&Candidate| inputs.contains(&table.id);
        let tables: Vec<_> = view.tables.iter().filter(is_input).collect();
        options.expired(view, &tables, &view.overlapping(&tables))
    }

    /// May tombstones of these tables go at all (`only_purge_repaired_tombstones`)?
    pub fn may_purge<'a>(&self, inputs: impl IntoIterator<Item = &'a Candidate>) -> bool {
        let options = TombstoneOptions::new(Given(&self.params));
        !options.only_repaired || inputs.into_iter().all(|table| table.repaired_at != 0)
    }

    /// Into how many shards of the ring a flush is split.
    pub fn flush_shards(&self, flush_bytes: f64) -> u32 {
        match self.groups.last() {
            Some(Class::Unified(strategy)) => strategy.sharding.shards(flush_bytes),
            _ => 1,
        }
    }
}
