//! The steps of operations, as an operator takes them: each with the verb or the setting that an
//! operator uses, tried again after it failed, and abandoned now and then.

use std::time::Duration;

use cluster::Standing;
use env::sim::World;
use ring::State;
use types::Token;

use super::Operator;
use super::parties::{Part, of};
use crate::ring::asked::Asked;
use crate::ring::elastic::kind::Kind;
use crate::ring::elastic::work::{Phase, Work};

/// After what time something is tried again, in milliseconds.
const AGAIN_MILLIS: (u64, u64) = (1_000, 5_000);
/// How long a verb waits for who does not confirm it before it is asked for again.
const CONFIRMED_AFTER: Duration = Duration::from_secs(15);
/// Nothing is tried more often.
const TRIES_MAX: u32 = 60;
/// So often at least before it is abandoned.
const TRIES_MIN: u32 = 2;

impl Operator {
    /// Takes the next step of an operation. Is it at its end?
    pub(super) fn go_on(&mut self, world: &World, work: &mut Work) -> Result<bool, String> {
        if work.tries > TRIES_MAX {
            return Err(format!("{:?} of node {} never ends", work.kind, work.node + 1));
        }
        if work.again_at.is_some_and(|at| at > world.now()) {
            return Ok(false);
        }
        match work.phase {
            Phase::AwaitDeath => Ok(self.await_death(world, work)),
            Phase::Enter => self.enter(world, work),
            Phase::Act => self.act(world, work),
            Phase::TakeOut => Ok(self.take_out(world, work)),
            Phase::BeForgotten => Ok(self.be_forgotten(world, work)),
            Phase::Stay => Ok(self.stay(world, work)),
        }
    }

    fn again(&self, world: &World, work: &mut Work) {
        work.tries += 1;
        work.again_at = Some(world.now() + self.millis(AGAIN_MILLIS));
    }

    fn may_give_up(&self, work: &Work) -> bool {
        work.tries >= TRIES_MIN && self.rng.one_in(3)
    }

    /// Starts a machine with an empty directory as a node that joins, or takes another's place.
    pub(super) fn come_in(
        &mut self,
        world: &World,
        node: usize,
        kind: Kind,
        of_dead: Option<usize>,
    ) {
        self.directories += 1;
        let mut settings =
            vec![format!("data_dir=/d{}", self.directories), "auto_bootstrap=true".to_owned()];
        if kind == Kind::Survey {
            settings.push("write_survey=true".to_owned());
        }
        if let Some(dead) = of_dead {
            settings.push(format!("replace_address_first_boot={}", of(dead)));
        }
        self.parts[node] = Part::Entering;
        self.tell(world, || format!("node {} comes in: {settings:?}", node + 1));
        let started = self.members[node].start(world, &self.plan, &settings);
        if let Err(why) = started {
            self.model.fail(format!("node {} cannot be started: {why}", node + 1));
        }
    }

    fn await_death(&mut self, world: &World, work: &mut Work) -> bool {
        let Some(gone) = work.gone else { return true };
        if self.all_see(gone, |seen| seen.is_none_or(|node| !node.is_up)) {
            self.come_in(world, work.node, work.kind, Some(gone));
            work.phase = Phase::Enter;
        }
        false
    }

    /// What a verb said, once it did; nothing is under way then.
    fn answer(&self, world: &World, work: &mut Work) -> Option<Result<String, String>> {
        let answer = work.asked.as_ref()?.answer(world, &self.members)?;
        work.asked = None;
        self.tell(world, || format!("{:?} of {}: {answer:?}", work.kind, work.node + 1));
        Some(answer)
    }

    fn ask(&self, world: &World, work: &mut Work, by: usize, line: &str) {
        work.asked = Asked::new(&self.members[by], line);
        self.tell(world, || format!("node {} is asked: {line}", by + 1));
    }

    fn enter(&mut self, world: &World, work: &mut Work) -> Result<bool, String> {
        let member = self.members[work.node].clone();
        let answer = self.answer(world, work);
        if !world.is_up(member.id) {
            member.close();
            if member.back_at.get().is_some() {
                self.attempt_anew(work);
                return Ok(false);
            }
            let exits = world.exits(member.id);
            self.tell(world, || format!("node {} ended: {exits:?}", work.node + 1));
            self.model.ended(work.node, world.now());
            self.model.count("elastic.join_refused");
            self.attempt_anew(work);
            if self.may_give_up(work) {
                self.abandon(world, work);
            } else {
                self.again(world, work);
                member.back_at.set(work.again_at);
            }
            return Ok(false);
        }
        let Some(way) = member.way() else { return Ok(false) };
        let Some(join) = way.shard.join() else { return Ok(false) };
        let standing = join.standing();
        // one that dies before the others have heard of it never was a member for them
        let is_seen = |node: &ring::Node| node.state == State::Normal;
        if standing == Standing::Member
            && !self.all_see(work.node, |seen| seen.is_some_and(is_seen))
        {
            return Ok(false);
        }
        if standing == Standing::Member {
            self.parts[work.node] = Part::Member;
            if work.kind == Kind::Replace
                && let Some(gone) = work.gone
            {
                self.parts[gone] = Part::Spare;
            }
            self.did(world, work);
            return Ok(true);
        }
        if work.asked.is_some() {
            return Ok(false);
        }
        if let Some(Err(_)) = answer {
            self.again(world, work);
            return Ok(false);
        }
        match standing {
            Standing::Surveying => {
                // for a while it only surveys
                if work.tries == 0 {
                    self.again(world, work);
                    return Ok(false);
                }
                self.ask(world, work, work.node, "join");
            }
            Standing::Broken => {
                match self.rng.below(4) {
                    0 if self.may_give_up(work) => self.abandon(world, work),
                    1 => {
                        self.model.count("elastic.begun_anew");
                        self.stop(world, work.node, false, Duration::from_millis(300));
                    }
                    _ => {
                        self.model.count("elastic.resume");
                        self.ask(world, work, work.node, "bootstrap resume -f");
                    }
                }
                work.tries += 1;
            }
            Standing::Apart => self.ask(world, work, work.node, "join"),
            Standing::Joining | Standing::Member => {}
        }
        Ok(false)
    }

    /// A node that is coming in is given up.
    fn abandon(&mut self, world: &World, work: &mut Work) {
        self.model.count("elastic.abandoned");
        let had_lost_any = self.lost_any;
        self.kill_for_good(world, work.node);
        work.asked = None;
        work.again_at = None;
        if work.kind == Kind::ReplaceInPlace {
            work.phase = Phase::AwaitDeath;
            return;
        }
        // it had nothing that others had not
        self.lost_any = had_lost_any;
        work.phase = Phase::BeForgotten;
        work.asked = None;
    }

    /// The others forget a node that was to come in: by themselves, or as they are told.
    fn be_forgotten(&mut self, world: &World, work: &mut Work) -> bool {
        let answer = self.answer(world, work);
        if work.asked.is_some() {
            return false;
        }
        if self.is_forgotten(work.node) {
            self.parts[work.node] = Part::Spare;
            let Some(gone) = work.gone else { return true };
            // who was to be replaced is dead still
            (work.node, work.phase, work.asked) = (gone, Phase::TakeOut, None);
            work.kind = Kind::Remove;
            return false;
        }
        if answer.is_none() && self.rng.one_in(2) {
            let ip = of(work.node);
            if let Some(by) = self.any_member() {
                self.model.count("elastic.assassinated_newcomer");
                self.ask(world, work, by, &format!("assassinate {ip}"));
            }
        }
        self.again(world, work);
        false
    }

    fn any_member(&self) -> Option<usize> {
        let members = self.all(Part::Member);
        let mut serving = members.into_iter().filter(|node| self.members[*node].door().is_some());
        let serving: Vec<usize> = serving.by_ref().collect();
        serving.get(self.rng.below(serving.len().max(1) as u64) as usize).copied()
    }

    /// A node that is dead is removed or assassinated.
    fn take_out(&mut self, world: &World, work: &mut Work) -> bool {
        let Some(gone) = work.gone else { return true };
        let answer = self.answer(world, work);
        if work.asked.is_some() {
            return false;
        }
        if self.is_forgotten(gone) {
            self.parts[gone] = Part::Spare;
            self.did(world, work);
            return true;
        }
        match answer {
            Some(Ok(_)) => {
                work.tries += 1;
                work.again_at = Some(world.now() + CONFIRMED_AFTER.min(self.millis(AGAIN_MILLIS)));
                return false;
            }
            Some(Err(_)) => {
                self.again(world, work);
                return false;
            }
            None => {}
        }
        if !self.all_see(gone, |seen| seen.is_none_or(|node| !node.is_up)) {
            return false;
        }
        let (Some(by), Some(host)) = (self.any_member(), self.host(gone)) else { return false };
        if work.kind == Kind::Assassinate {
            self.be_lax(work.kind);
            self.ask(world, work, by, &format!("assassinate {}", of(gone)));
        } else {
            self.ask(world, work, by, &format!("removenode {host}"));
        }
        false
    }

    /// A member does something, or leaves its place.
    fn act(&mut self, world: &World, work: &mut Work) -> Result<bool, String> {
        let member = self.members[work.node].clone();
        let answer = self.answer(world, work);
        if work.asked.is_some() {
            return Ok(false);
        }
        if !world.is_up(member.id) || member.way().is_none() {
            return Ok(false);
        }
        match answer {
            Some(Ok(_)) => {
                if work.kind == Kind::Decommission {
                    member.close();
                    world.kill(member.id);
                    self.model.ended(work.node, world.now());
                    self.parts[work.node] = Part::Spare;
                }
                self.did(world, work);
                return Ok(true);
            }
            Some(Err(_)) if matches!(work.kind, Kind::Cleanup | Kind::Rebuild) => {
                self.model.count("elastic.not_done");
                return Ok(true);
            }
            Some(Err(why)) => {
                let is_refused = why.contains("Other bootstrapping")
                    || why.contains("Unsupported operation")
                    || why.contains("unable to leave the ring");
                if is_refused && work.tries == 0 {
                    self.model.count("elastic.refused");
                    return Ok(true);
                }
                self.again(world, work);
                if self.may_give_up(work) {
                    self.model.count("elastic.given_up");
                    self.stop(world, work.node, false, Duration::from_millis(300));
                    work.phase = Phase::Stay;
                }
                return Ok(false);
            }
            None => {}
        }
        self.attempt_anew(work);
        match work.kind {
            Kind::Decommission => self.ask(world, work, work.node, "decommission"),
            Kind::Move if self.is_at(work) => {
                self.did(world, work);
                return Ok(true);
            }
            Kind::Move => self.ask(world, work, work.node, &format!("move {}", work.token)),
            Kind::Cleanup => self.ask(world, work, work.node, "cleanup"),
            Kind::Rebuild => self.ask(world, work, work.node, "rebuild"),
            _ => return Err(format!("{:?} is none of a member", work.kind)),
        }
        Ok(false)
    }

    /// Is a node where it was to move?
    fn is_at(&self, work: &Work) -> bool {
        let way = self.members[work.node].way();
        let membership = way.as_ref().and_then(|way| way.shard.membership());
        membership.is_some_and(|it| it.place().tokens.contains(&Token(work.token)))
    }

    /// A node that was to leave its place, and was started again, is what it was.
    fn stay(&mut self, world: &World, work: &mut Work) -> bool {
        let member = &self.members[work.node];
        let is_normal = || {
            self.all_see(work.node, |seen| {
                seen.is_some_and(|node| node.is_up && node.state == State::Normal)
            })
        };
        world.is_up(member.id) && member.door().is_some() && is_normal()
    }
}
