//! A table's strategy: which class it is, and its state. SSTables that are repaired, those that are
//! not, and those of each session of incremental repair never meet: each group has a strategy of
//! its own (`CompactionStrategyManager`, `PendingRepairManager`).

use std::collections::BTreeMap;

use schema::{CompactionClass, CompactionParams};

use super::choice::{Candidate, Choice, Given, Reason, View};
use super::leveled::Leveled;
use super::size_tiered::{SizeTiered, ids};
use super::time_window::TimeWindow;
use super::tombstones::TombstoneOptions;
use super::unified::Unified;
use crate::repair_status::RepairStatus;

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
    /// As it begins.
    fresh: Class,
    /// By [`RepairStatus::group`]; of a session as long as it has SSTables.
    groups: BTreeMap<RepairStatus, Class>,
}

/// The SSTables of a view by their groups, that of repaired ones first.
type Groups<'a> = BTreeMap<RepairStatus, Vec<&'a Candidate>>;

fn groups<'a>(view: &View<'a>) -> Groups<'a> {
    let mut groups = Groups::new();
    for table in view.tables {
        groups.entry(table.repair.group()).or_default().push(table);
    }
    groups
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
        let fresh = Class::new(&asked, now_millis);
        Self { params: params.clone(), fresh, groups: BTreeMap::new() }
    }

    /// What it was made of.
    pub fn params(&self) -> &CompactionParams {
        &self.params
    }

    /// The strategy of a group: one that begins, if there is none.
    fn class(&self, group: &RepairStatus) -> &Class {
        self.groups.get(group).unwrap_or(&self.fresh)
    }

    /// What is to be compacted next, if anything is worth it.
    pub fn next(&mut self, view: &View<'_>) -> Option<Choice> {
        let groups = groups(view);
        self.groups.retain(|group, _| group.session().is_none() || groups.contains_key(group));
        let mut order = Vec::new();
        for (group, mine) in groups {
            order.push((self.class(&group).pending(&mine, view), group, mine));
        }
        // the group with more to do first
        order.sort_by_key(|(pending, _, _)| std::cmp::Reverse(*pending));
        order.into_iter().find_map(|(_, group, mine)| {
            let class = self.groups.entry(group).or_insert_with(|| self.fresh.clone());
            class.next(&mine, view)
        })
    }

    /// About how many tasks are to be done.
    pub fn pending(&self, view: &View<'_>) -> usize {
        groups(view).iter().map(|(group, mine)| self.class(group).pending(mine, view)).sum()
    }

    /// Everything into one, or as few as the strategy has: `nodetool compact`, with
    /// `--split-output`.
    pub fn major(&self, view: &View<'_>, split: bool) -> Vec<Choice> {
        let of = |(group, mine): (_, &Vec<_>)| self.class(group).major(mine, view, split);
        groups(view).iter().flat_map(of).collect()
    }

    /// These SSTables, those of a group together: `nodetool compact --user-defined`.
    pub fn user_defined(&self, view: &View<'_>, wanted: &[u64]) -> Vec<Choice> {
        let mut choices = Vec::new();
        for (group, mut mine) in groups(view) {
            mine.retain(|table| wanted.contains(&table.id));
            if !mine.is_empty() {
                choices.push(self.class(&group).user_defined(&mine, view));
            }
        }
        choices
    }

    /// Notes that a task is done: what went in, and what came out.
    pub fn replaced(&mut self, removed: &[Candidate], added: &[Candidate]) {
        let Some(lowest) = removed.iter().map(|table| table.level).min() else { return };
        let group = removed.first().map(|table| table.repair.group());
        let class = group.and_then(|group| self.groups.get_mut(&group));
        if let Some(Class::Leveled(strategy)) = class {
            strategy.replaced(lowest, added);
        }
    }

    /// SSTables that cannot stay in the level that their metadata name: they go to level 0.
    pub fn displaced(&self, view: &View<'_>) -> Vec<u64> {
        match self.fresh {
            Class::Leveled(_) => {
                groups(view).values().flat_map(|mine| Leveled::levels(mine).displaced()).collect()
            }
            _ => Vec::new(),
        }
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
        !options.only_repaired || inputs.into_iter().all(|table| table.repair.is_repaired())
    }

    /// Into how many shards of the ring a flush is split.
    pub fn flush_shards(&self, flush_bytes: f64) -> u32 {
        match &self.fresh {
            Class::Unified(strategy) => strategy.sharding.shards(flush_bytes),
            _ => 1,
        }
    }
}
