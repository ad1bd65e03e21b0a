//! The steps by which a node becomes a part of the ring, in their order. Pure: who drives them says
//! how each went.
//!
//! What must hold, whatever fails and whoever stops: nothing is fetched before all know that this
//! node must be written to, and nothing is served before all of it was fetched and that was noted.

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// May it join at all?
    Check,
    /// Its tokens, and that it lacks its data, are saved.
    Record,
    /// The others know that it joins.
    Announce,
    /// Its data is fetched.
    Fetch,
    /// The others know it still, and have written to it all along.
    Confirm,
    /// That it has its data is saved.
    Complete,
    /// It owns its tokens.
    Serve,
}

/// How the node joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It was a member before: it has its data.
    Return,
    /// It takes tokens without their data.
    Settle,
    /// It fetches the data of its tokens.
    Fetch,
}

/// Where the node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It waits until it is told to join.
    Apart,
    /// It is joining.
    Joining,
    /// Its data could not be fetched: it waits until it is told to go on.
    Broken,
    /// It has its data and takes writes, and waits until it is told to join.
    Surveying,
    /// It is a member of the ring.
    Member,
}

/// How far the node is.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    kind: Kind,
    surveys: bool,
    /// The step that is next; none once it is a member.
    next: Option<Step>,
    standing: Standing,
}

impl Steps {
    /// Of a node that waits until it is told to join.
    pub fn apart() -> Self {
        Self { kind: Kind::Return, surveys: false, next: None, standing: Standing::Apart }
    }

    /// Of a node that joins now, or is told to. `surveys`: it waits once it has its data.
    pub fn begin(&mut self, kind: Kind, surveys: bool) {
        assert_eq!(self.standing, Standing::Apart, "a node joins once");
        let first = match kind {
            Kind::Return => Step::Serve,
            Kind::Settle | Kind::Fetch => Step::Check,
        };
        *self = Self { kind, surveys, next: Some(first), standing: Standing::Joining };
    }

    /// The step to be taken; none while it waits for the operator, or has ended.
    pub fn next(&self) -> Option<Step> {
        self.next.filter(|_| self.standing == Standing::Joining)
    }

    /// A step was taken.
    pub fn done(&mut self, step: Step) {
        assert_eq!(self.next(), Some(step), "steps are taken in their order");
        let fetches = self.kind == Kind::Fetch;
        self.next = Some(match step {
            Step::Check => Step::Record,
            Step::Record if fetches => Step::Announce,
            Step::Announce => Step::Fetch,
            Step::Fetch => Step::Confirm,
            Step::Record | Step::Confirm => Step::Complete,
            Step::Complete => Step::Serve,
            Step::Serve => {
                self.next = None;
                return self.standing = Standing::Member;
            }
        });
        if self.surveys && step == Step::Fetch {
            self.standing = Standing::Surveying;
        }
    }

    /// A step could not be taken. Data that could not be fetched may be fetched later; whatever
    /// else fails begins anew.
    pub fn failed(&mut self, step: Step) {
        assert_eq!(self.next(), Some(step), "steps are taken in their order");
        self.standing = match step {
            Step::Fetch | Step::Confirm => Standing::Broken,
            _ => Standing::Apart,
        };
    }

    /// Goes on with fetching. Is there anything to go on with?
    pub fn resume(&mut self) -> bool {
        let is_broken = self.standing == Standing::Broken;
        if is_broken {
            self.standing = Standing::Joining;
        }
        is_broken
    }

    /// Joins after a survey. Was there one?
    pub fn end_survey(&mut self) -> bool {
        let is_surveying = self.standing == Standing::Surveying;
        if is_surveying {
            self.standing = Standing::Joining;
        }
        is_surveying
    }

    /// Where it stands.
    pub fn standing(&self) -> Standing {
        self.standing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum Act {
        Begin(Kind, bool),
        Done,
        Failed,
        Resume,
        Join,
    }

    fn act() -> impl Strategy<Value = Act> {
        let kind = prop_oneof![Just(Kind::Return), Just(Kind::Settle), Just(Kind::Fetch)];
        prop_oneof![
            (kind, any::<bool>()).prop_map(|(kind, surveys)| Act::Begin(kind, surveys)),
            Just(Act::Done),
            Just(Act::Done),
            Just(Act::Done),
            Just(Act::Failed),
            Just(Act::Resume),
            Just(Act::Join),
        ]
    }

    proptest! {
        #[test]
        fn nothing_is_served_before_it_is_there(acts in prop::collection::vec(act(), 0..60)) {
            let mut steps = Steps::apart();
            // what was done since the last beginning, in its order
            let (mut done, mut kind) = (Vec::new(), Kind::Return);
            let mut survey_ended = true;
            for act in acts {
                match act {
                    Act::Begin(how, surveys) if steps.standing() == Standing::Apart => {
                        steps.begin(how, surveys);
                        (kind, done) = (how, Vec::new());
                        survey_ended = !surveys || how != Kind::Fetch;
                    }
                    Act::Begin(..) => {}
                    Act::Done => {
                        if let Some(step) = steps.next() {
                            steps.done(step);
                            done.push(step);
                        }
                    }
                    Act::Failed => {
                        if let Some(step) = steps.next() {
                            steps.failed(step);
                        }
                    }
                    Act::Resume => _ = steps.resume(),
                    Act::Join => survey_ended |= steps.end_survey(),
                }
                let all: &[Step] = match kind {
                    Kind::Return => &[Step::Serve],
                    Kind::Settle => &[Step::Check, Step::Record, Step::Complete, Step::Serve],
                    Kind::Fetch => &[
                        Step::Check,
                        Step::Record,
                        Step::Announce,
                        Step::Fetch,
                        Step::Confirm,
                        Step::Complete,
                        Step::Serve,
                    ],
                };
                prop_assert!(all.starts_with(&done), "{done:?}");
                let is_member = steps.standing() == Standing::Member;
                prop_assert_eq!(is_member, done == all);
                prop_assert!(survey_ended || !done.contains(&Step::Confirm));
                // whoever waits is told how to go on, whoever does not has a next step
                prop_assert_eq!(steps.next().is_some(), steps.standing() == Standing::Joining);
            }
        }
    }
}
