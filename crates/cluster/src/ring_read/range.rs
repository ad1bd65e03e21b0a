//! Partitions in a range of the ring (`reads.range.RangeCommands`): plan after plan, several at
//! once where one alone gives too little.

use std::collections::VecDeque;
use std::rc::Rc;

use cql::select::{RangeBound, Target};
use internode::Verb;
use internode::payload::read::{KeyRange, Position, RowsOf, Target as Wanted};
use protocol::ErrorResponse;
use ring::{RangePlan, RangePlans};
use storage::PartitionKey;
use types::Token;

use super::asked::Contacts;
use super::key::KeyRows;
use super::{RingRead, rows_after, rows_of};
use crate::read::shard::Task;
use crate::reconcile::{End, Partition, Reconciled};
use crate::shard_context::STATEMENT;

/// Plans that are asked at once at the most.
const PLANS_AT_ONCE: usize = 32;

/// Where a scan stands.
#[derive(Clone)]
enum From {
    Start(RangeBound),
    /// After all of a partition.
    After(PartitionKey),
    /// After all of a token.
    Token(Token),
}

/// A scan of the ring: partitions in order, each as its replicas agree on it.
pub(crate) struct Scan {
    read: Rc<RingRead>,
    rows: RowsOf,
    to: RangeBound,
    from: From,
    /// The next of what is left of the ring.
    plans: VecDeque<Result<RangePlan, ring::Unavailable>>,
    /// Is nothing left of it but these?
    is_over: bool,
    wanted: u32,
    per_partition: u32,
    /// Partitions that are known, and whether the last of them goes on.
    found: VecDeque<(Partition, Option<RowsOf>)>,
    /// Plans that are asked at once.
    at_once: usize,
}

impl Scan {
    /// From the start of a task's range, or from after its first partition. `wanted` rows are
    /// enough if all of them count.
    pub fn new(read: &Rc<RingRead>, task: &Task, after: Option<PartitionKey>, wanted: u32) -> Self {
        let (from, to) = match &task.read.target {
            Target::Range { from, to } => (from.clone(), to.clone()),
            Target::Keys(_) => (RangeBound::Unbounded, RangeBound::Unbounded),
        };
        let from = after.map_or(From::Start(from), From::After);
        Self {
            rows: rows_of(&task.read.rows, task.read.reversed),
            read: Rc::clone(read),
            to,
            from,
            plans: VecDeque::new(),
            is_over: false,
            wanted,
            per_partition: task.read.per_partition_limit,
            found: VecDeque::new(),
            at_once: 1,
        }
    }

    /// The next partition.
    pub async fn next(&mut self) -> Result<Option<(PartitionKey, KeyRows)>, ErrorResponse> {
        while self.found.is_empty() {
            if self.plans.is_empty() {
                self.plan_on();
            }
            if self.plans.is_empty() {
                return Ok(None);
            }
            self.go_on().await?;
        }
        let Some((partition, left)) = self.found.pop_front() else { return Ok(None) };
        let key = partition.key.clone();
        let (wanted, most) = (self.wanted, self.per_partition);
        Ok(Some((key, KeyRows::begun(&self.read, partition, left, wanted, most))))
    }

    /// Plans some more of what is left.
    fn plan_on(&mut self) {
        let first = match &self.from {
            _ if self.is_over => None,
            From::Start(RangeBound::Unbounded) => Some(Token::MIN),
            From::Start(RangeBound::Token { token, inclusive: true }) => Some(*token),
            From::Start(RangeBound::Token { token, .. }) | From::Token(token) => {
                token.0.checked_add(1).map(Token)
            }
            From::Start(RangeBound::Key { key, .. }) => Some(key.token),
            From::After(key) => Some(key.token),
        };
        let last = end_of(&self.to);
        if let Some(first) = first.filter(|first| last.is_none_or(|last| *first <= last)) {
            let (ring, placement) = (&self.read.scope.ring, &self.read.scope.placement);
            let ends = ring.cuts(first, last).map(Some).chain([last]);
            let reads = &self.read.reads;
            let order = reads.snitch.order(&reads.shard.env);
            let plans = RangePlans::new(ring, placement, self.read.level, order.proximity(), ends);
            self.plans.extend(plans.take(PLANS_AT_ONCE));
        }
        self.is_over |= match self.plans.back() {
            Some(Ok(plan)) => plan.end == last,
            Some(Err(_)) | None => true,
        };
    }

    /// Asks for what the next plans are about, all at once. Where one has more than it gave, those
    /// after it are asked again.
    async fn go_on(&mut self) -> Result<(), ErrorResponse> {
        let mut asked = Vec::new();
        let mut from = self.from.clone();
        for plan in self.plans.iter().take(self.at_once) {
            let plan = plan.clone()?;
            let next = plan.end.map(From::Token);
            let range = self.range(&from, &plan);
            let limits = self.read.limits(self.wanted, self.per_partition);
            let target = Wanted::Range { keys: range, rows: self.rows.clone(), after: None };
            let command = self.read.command(limits, target);
            let read = Rc::clone(&self.read);
            asked.push(self.read.reads.shard.env.spawn_task(STATEMENT, async move {
                let contacts = Contacts {
                    data: plan.contacts().to_vec(),
                    digests: Vec::new(),
                    acks: plan.acks(&read.scope.ring),
                };
                read.ask(&command, Verb::RangeReq, contacts, None, || None).await
            }));
            if let Some(next) = next {
                from = next;
            }
        }
        self.read.trace.note(&self.read.reads.shard.env, || {
            format!("Submitted {} concurrent range requests", asked.len())
        });
        for answer in asked {
            let Reconciled { partitions, end, .. } = match answer.await {
                Err(_) if self.read.asks_for_fewer() => {
                    self.at_once = 1;
                    return Ok(());
                }
                answer => answer?,
            };
            let plan = self.plans.front().and_then(|plan| plan.as_ref().ok());
            let plan_end = plan.and_then(|plan| plan.end);
            let left = end
                .as_ref()
                .and_then(|end| rows_after(&self.read.table, &self.rows, end.row.as_ref()?));
            let last = partitions.len().saturating_sub(1);
            for (at, partition) in partitions.into_iter().enumerate() {
                let goes_on =
                    at == last && end.as_ref().is_some_and(|end| end.key == partition.key);
                let left = if goes_on { left.clone() } else { None };
                self.found.push_back((partition, left));
            }
            match end {
                // what the plans after it gave is not next
                Some(End { key, .. }) => {
                    self.from = From::After(key);
                    self.at_once = 1;
                    return Ok(());
                }
                None => {
                    self.plans.pop_front();
                    if let Some(end) = plan_end {
                        self.from = From::Token(end);
                    }
                }
            }
        }
        self.at_once = (self.at_once * 2).min(PLANS_AT_ONCE);
        Ok(())
    }

    /// What of a plan is left to be read.
    fn range(&self, from: &From, plan: &RangePlan) -> KeyRange {
        let (from, from_inclusive) = match from {
            From::Start(RangeBound::Unbounded) => (Position::Before(Token::MIN), false),
            From::Start(RangeBound::Token { token, inclusive: true }) => {
                (Position::Before(*token), false)
            }
            From::Start(RangeBound::Token { token, inclusive: false }) | From::Token(token) => {
                (Position::After(*token), false)
            }
            From::Start(RangeBound::Key { key, inclusive }) => {
                (Position::Key(key.bytes.clone().into()), *inclusive)
            }
            From::After(key) => (Position::Key(key.bytes.clone().into()), false),
        };
        let is_last = plan.end.is_none() || plan.end == end_of(&self.to);
        let (to, to_inclusive) = match (&self.to, plan.end) {
            (_, Some(end)) if !is_last => (Position::After(end), true),
            (RangeBound::Unbounded, _) => (Position::Before(Token::MIN), true),
            (RangeBound::Token { token, inclusive: true }, _) => (Position::After(*token), true),
            (RangeBound::Token { token, inclusive: false }, _) => (Position::Before(*token), true),
            (RangeBound::Key { key, inclusive }, _) => {
                (Position::Key(key.bytes.clone().into()), *inclusive)
            }
        };
        KeyRange { from, from_inclusive, to, to_inclusive }
    }
}

/// The token that a range ends with; none at the ring's end.
fn end_of(to: &RangeBound) -> Option<Token> {
    match to {
        RangeBound::Unbounded => None,
        RangeBound::Token { token, .. } => Some(*token),
        RangeBound::Key { key, .. } => Some(key.token),
    }
}
