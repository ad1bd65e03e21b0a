//! What an operator does when an operation is over: replicas that may lack something are mended,
//! and what nobody reads any more is dropped.

use std::rc::Rc;
use std::time::Duration;

use env::sim::World;
use protocol::Consistency;

use super::{Operator, Part};
use crate::ring::ask::{Failed, Statement, ask};
use crate::ring::asked::Asked;
use crate::ring::model::Spot;

/// A verb that has not ended by then never will.
const MAX: Duration = Duration::from_secs(120);
/// `nodetool cleanup` refuses while others may still read what a node gave up.
const SETTLED_AFTER: Duration = Duration::from_secs(11);

impl Operator {
    /// Reads everything at ALL, which brings to each replica what others have. If that fails it is
    /// tried again.
    pub(super) fn mend(&mut self, world: &World) -> Result<(), String> {
        let once = (0..self.model.written_once.get()).map(Spot::Once);
        let all: Vec<Spot> = Spot::all().chain(once).collect();
        for spot in all {
            let Some(member) = self.all(Part::Member).into_iter().next() else { return Ok(()) };
            let Some(way) = self.members[member].door() else { return Ok(()) };
            let (clients, text) = (self.clients.clone(), spot.text());
            let statement = Statement::new(Consistency::All, text);
            let asked = async move { ask(&clients, &way, statement).await };
            let answer = world.block_on(&self.clients, MAX, asked);
            match answer.map_err(|failure| failure.what.to_string())? {
                Ok(_) => {}
                Err(Failed::Stuck) => return Err("a read at ALL never ends".to_owned()),
                Err(_) => return Ok(()),
            }
        }
        self.tell(world, || "the replicas are mended".to_owned());
        self.model.count("elastic.mended");
        self.model.be_strict(world.now());
        Ok(())
    }

    /// Every member drops what it is no replica of.
    pub fn clean_up(&mut self, world: &World) -> Result<(), String> {
        let ran = world.run_for(SETTLED_AFTER);
        ran.map_err(|failure| failure.what.to_string())?;
        for node in self.all(Part::Member) {
            let member = Rc::clone(&self.members[node]);
            let asked = Asked::new(&member, "cleanup").ok_or("a member does not serve")?;
            let answered = || asked.answer(world, &self.members).is_some();
            let ended = world.run_until(answered, MAX);
            ended.map_err(|failure| format!("a cleanup does not end: {}", failure.what))?;
            if let Some(Err(why)) = asked.answer(world, &self.members) {
                return Err(format!("node {} does not clean up: {why}", node + 1));
            }
        }
        Ok(())
    }
}
