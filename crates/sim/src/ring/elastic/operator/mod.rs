//! Who changes a ring: chooses what makes sense now, begins it as an operator does, and brings to
//! an end what was broken. The steps of each operation are in `steps.rs`.

mod ends;
mod harms;
mod parties;
mod steps;

use std::rc::Rc;
use std::time::Duration;

use env::sim::World;
use env::{Env, Instant, Rng};

use super::kind::Kind;
use super::work::{Phase, Work};
use crate::ring::harm::{Harm, Harmed};
use crate::ring::member::Members;
use crate::ring::model::Model;
use crate::ring::plan::Plan;
use parties::Part;

/// Between two operations, in milliseconds.
const PAUSE_MILLIS: (u64, u64) = (200, 3_000);
/// Something goes wrong so long after an operation began, in milliseconds.
const HARM_MILLIS: (u64, u64) = (0, 9_000);
/// So long all must see two operations under way before they count as such.
const TOGETHER: Duration = Duration::from_secs(1);
/// Members of a ring at most.
const MEMBERS_MAX: usize = 5;

/// Who changes a ring.
pub struct Operator {
    pub(super) rng: Rng,
    pub(super) plan: Plan,
    pub(super) members: Members,
    pub(super) model: Rc<Model>,
    pub(super) clients: Env,
    pub(super) parts: Vec<Part>,
    pub(super) works: Vec<Work>,
    pub(super) harmed: Option<Harmed>,
    next: Instant,
    is_closed: bool,
    /// Counts directories, so that each node begins with an empty one.
    pub(super) directories: u64,
    /// Counts attempts.
    pub(super) attempts: u64,
    /// Attempts that came to their end, and when each moved its data.
    ended: Vec<(u64, Span)>,
    /// Two attempts that all see under way, and since when.
    together: Option<((u64, u64), Instant)>,
    /// A node has died for good.
    pub(super) lost_any: bool,
    took_own_place: bool,
}

/// From when until when data moved.
#[derive(Clone, Copy, Debug)]
struct Span {
    from: Option<Instant>,
    until: Option<Instant>,
}

impl Span {
    /// Is there a moment of both? One that moved nothing has none.
    fn meets(self, other: Self) -> bool {
        let begins_before = |one: Self, other: Self| {
            one.from.zip(other.until).is_some_and(|(from, until)| from < until)
        };
        begins_before(self, other) && begins_before(other, self)
    }
}

impl Operator {
    /// Nothing has begun yet.
    pub fn new(rng: Rng, plan: &Plan, members: &Members, model: &Rc<Model>, clients: &Env) -> Self {
        let part = |node| if node < plan.begin_with { Part::Member } else { Part::Spare };
        Self {
            rng,
            plan: plan.clone(),
            members: Rc::clone(members),
            model: Rc::clone(model),
            clients: clients.clone(),
            parts: (0..plan.nodes.len()).map(part).collect(),
            works: Vec::new(),
            harmed: None,
            next: Instant::ZERO,
            is_closed: false,
            directories: 0,
            attempts: 0,
            ended: Vec::new(),
            together: None,
            lost_any: false,
            took_own_place: false,
        }
    }

    /// Nothing new begins, and nothing more goes wrong.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.works.iter_mut().for_each(|work| work.harm = None);
    }

    /// Is all that began at its end?
    pub fn is_idle(&self, world: &World) -> bool {
        self.works.is_empty()
            && self.harmed.is_none()
            && !self.model.is_lax.get()
            && self.are_all_up(world)
    }

    /// Has a node died for good?
    pub fn has_lost_any(&self) -> bool {
        self.lost_any
    }

    /// Has a node taken its own place again?
    pub fn has_taken_own_place(&self) -> bool {
        self.took_own_place
    }

    pub(super) fn millis(&self, (least, most): (u64, u64)) -> Duration {
        Duration::from_millis(self.rng.between(least, most))
    }

    pub(super) fn tell(&self, world: &World, what: impl FnOnce() -> String) {
        self.model.tell(world.now(), what);
    }

    /// Does what is due.
    pub fn step(&mut self, world: &World) -> Result<(), String> {
        let now = world.now();
        let bad = self.members.iter().filter_map(|member| member.bad_since.get()).min();
        self.model.settle(now, bad);
        self.lift(world);
        self.look(world)?;
        self.hurt(world);
        for mut work in std::mem::take(&mut self.works) {
            match self.go_on(world, &mut work)? {
                true => self.end(world, &work)?,
                false => self.works.push(work),
            }
        }
        self.look_at_two(world);
        if self.model.is_lax.get() && self.works.is_empty() && self.are_all_up(world) {
            match self.parties(Kind::Join).filter(|_| self.are_too_few()) {
                Some(parties) => self.begin_one(world, Kind::Join, parties, None),
                None => self.mend(world)?,
            }
        }
        if !self.is_closed && self.next <= now {
            self.next = now + self.millis(PAUSE_MILLIS);
            self.begin(world);
        }
        Ok(())
    }

    /// An operation came to its end: none that excludes it moved data at the same time. One that
    /// waited for the other before it moved any is all right.
    fn end(&mut self, world: &World, work: &Work) -> Result<(), String> {
        self.tell(world, || format!("{:?} of {} is at its end", work.kind, work.node + 1));
        let span = self.span(world, work);
        let mut together = self.ended.iter().filter(|(other, _)| work.together.contains(other));
        if let Some((other, of_other)) = together.find(|(_, other)| span.meets(*other)) {
            return Err(format!(
                "{:?} of node {} moved data {span:?}, and so did attempt {other} at the same time \
                 {of_other:?}",
                work.kind,
                work.node + 1
            ));
        }
        Ok(())
    }

    /// When an attempt moved its data.
    fn span(&self, world: &World, work: &Work) -> Span {
        let last = |mark| world.last_marked(self.members[work.node].id, mark);
        Span { from: last("ranges.moving"), until: last("ranges.moved") }
    }

    /// An attempt did what it was to do.
    pub(super) fn did(&mut self, world: &World, work: &Work) {
        self.ended.push((work.attempt, self.span(world, work)));
        self.model.count(work.kind.name());
    }

    pub(super) fn attempt(&mut self) -> u64 {
        self.attempts += 1;
        self.attempts
    }

    /// An attempt ended, and another begins.
    pub(super) fn attempt_anew(&mut self, work: &mut Work) {
        work.attempt = self.attempt();
        work.together.clear();
    }

    /// Notes which attempts all nodes see under way at the same time.
    fn look_at_two(&mut self, world: &World) {
        let moves = |work: &&Work| {
            let is_move =
                matches!(work.kind, Kind::Decommission | Kind::Move) || work.kind.enters();
            is_move
                && matches!(work.phase, Phase::Enter | Phase::Act)
                && world.is_up(self.members[work.node].id)
        };
        let moving: Vec<&Work> = self.works.iter().filter(moves).collect();
        let are_seen = |one: &Work, other: &Work| {
            self.is_seen_moving(one.node) && self.is_seen_moving(other.node)
        };
        let pair = match moving[..] {
            [one, other] if are_seen(one, other) => Some((one.attempt, other.attempt)),
            _ => None,
        };
        let Some(pair) = pair else {
            self.together = None;
            return;
        };
        match self.together {
            Some((seen, since)) if seen == pair => {
                if world.now().since(since) < TOGETHER {
                    return;
                }
                for work in &mut self.works {
                    if work.attempt == pair.0 {
                        work.together.insert(pair.1);
                    } else if work.attempt == pair.1 {
                        work.together.insert(pair.0);
                    }
                }
                self.model.count("elastic.two_seen");
            }
            _ => self.together = Some((pair, world.now())),
        }
    }

    /// Are there fewer members than replicas? Nothing can be read at ALL then.
    fn are_too_few(&self) -> bool {
        self.all(Part::Member).len() < self.plan.replicas[0]
    }

    /// Begins an operation that makes sense now.
    fn begin(&mut self, world: &World) {
        let is_second = match self.works.len() {
            0 => false,
            1 if self.rng.one_in(3) => true,
            _ => return,
        };
        if !is_second && (self.harmed.is_some() || self.model.is_lax.get()) {
            return;
        }
        let kind = Kind::ALL[self.rng.below(Kind::ALL.len() as u64) as usize];
        if is_second && !kind.may_be_second() {
            return;
        }
        if kind.takes_a_dead_one() && !self.are_all_up(world) {
            return;
        }
        let Some((node, gone)) = self.parties(kind) else { return };
        if is_second {
            self.model.count("elastic.two_at_once");
        }
        let harm = (self.plan.is_harmed && !self.rng.one_in(3)).then(|| {
            let harm = Harm::ALL[self.rng.below(4) as usize];
            (harm, world.now() + self.millis(HARM_MILLIS))
        });
        self.begin_one(world, kind, (node, gone), harm);
    }

    /// Begins an operation.
    fn begin_one(
        &mut self,
        world: &World,
        kind: Kind,
        (node, gone): (usize, Option<usize>),
        harm: Option<(Harm, Instant)>,
    ) {
        self.tell(world, || format!("{kind:?} of {} for {gone:?} begins", node + 1));
        if let Some(gone) = gone {
            self.kill_for_good(world, gone);
        }
        let (token, attempt) = (self.free_token(), self.attempt());
        self.works.push(Work {
            kind,
            node,
            gone,
            phase: match kind {
                Kind::Join | Kind::Survey => Phase::Enter,
                Kind::Remove | Kind::Assassinate => Phase::TakeOut,
                Kind::Replace | Kind::ReplaceInPlace => Phase::AwaitDeath,
                _ => Phase::Act,
            },
            asked: None,
            again_at: None,
            tries: 0,
            harm,
            token,
            attempt,
            together: [].into(),
        });
        self.took_own_place |= kind == Kind::ReplaceInPlace;
        if matches!(kind, Kind::Join | Kind::Survey) {
            self.come_in(world, node, kind, None);
        }
    }

    /// Who does it, and who is to be dead; none if it makes no sense now.
    fn parties(&self, kind: Kind) -> Option<(usize, Option<usize>)> {
        let pick = |nodes: &[usize]| {
            let at = self.rng.below(nodes.len().max(1) as u64) as usize;
            nodes.get(at).copied()
        };
        let replicas = self.plan.replicas[0];
        let is_free = |node: &usize| self.works.iter().all(|work| work.node != *node);
        let members = self.all(Part::Member);
        let free: Vec<usize> = members.iter().copied().filter(is_free).collect();
        // the first is the seed: it stays
        let others: Vec<usize> = free.iter().copied().filter(|node| *node > 0).collect();
        let spares = self.all(Part::Spare).into_iter().filter(is_free).collect::<Vec<_>>();
        let spare = pick(&spares);
        let may_be_less = members.len() > replicas.max(2);
        match kind {
            Kind::Join | Kind::Survey => {
                spare.filter(|_| members.len() < MEMBERS_MAX).map(|node| (node, None))
            }
            Kind::Decommission if may_be_less => pick(&others).map(|node| (node, None)),
            // what has one replica goes with its node
            Kind::Remove | Kind::Assassinate if may_be_less && replicas > 1 => {
                pick(&others).map(|gone| (gone, Some(gone)))
            }
            Kind::Replace if replicas > 1 => Some((spare?, Some(pick(&others)?))),
            Kind::ReplaceInPlace if replicas > 1 => pick(&others).map(|node| (node, Some(node))),
            Kind::Move if self.plan.nodes[0].tokens == 1 => pick(&free).map(|node| (node, None)),
            Kind::Cleanup | Kind::Rebuild => pick(&free).map(|node| (node, None)),
            _ => None,
        }
    }

    /// What is not at its end.
    pub fn said(&self, world: &World) -> String {
        let of = |work: &Work| {
            let (kind, node, phase) = (work.kind, work.node + 1, work.phase);
            let exits = world.exits(self.members[work.node].id);
            format!("{kind:?} of {node} in {phase:?}, tried {} times ({exits:?}); ", work.tries)
        };
        let works: String = self.works.iter().map(of).collect();
        format!("{works}{:?}, lax {}", self.parts, self.model.is_lax.get())
    }
}
