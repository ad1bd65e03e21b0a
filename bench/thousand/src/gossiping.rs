//! What gossip takes.

use gossip::{AppState, Gossiper};

use crate::world::{World, uuid};
use crate::{address, processor, resident};

/// Seconds in which nodes must have heard of something.
const LIMIT: u64 = 300;
/// Seconds of which the cost is measured.
const STEADY: u64 = 20;
/// Between two looks at who knows, in milliseconds.
const STEP: u64 = 250;

/// Prints it. Do all come to know the same?
pub fn measure(nodes: usize) -> bool {
    let before = resident();
    let mut world = World::new(nodes);
    let knows_all = |gossiper: &Gossiper| {
        gossiper.peers().filter(|(node, _)| gossiper.is_up(*node)).count() == nodes - 1
    };
    let met = until(&mut world, |world| world.nodes().all(|(_, one)| knows_all(one)));
    println!("{nodes} nodes that start at the same second, with 3 seeds");
    println!("  each knows that all others are up after {}", said(met));
    let memory = (resident() - before) / nodes as u64;
    println!("  {:.1} MB of each node's memory", memory as f64 / 1e6);

    let (messages, bytes, begin) = (world.messages, world.bytes, processor());
    world.run(STEADY * 1000);
    let per = (nodes as u64 * STEADY) as f64;
    println!(
        "  a node spends {:.2} ms of CPU a second, {:.1} messages and {:.1} KB sent",
        (processor() - begin) * 1000.0 / per,
        (world.messages - messages) as f64 / per,
        (world.bytes - bytes) as f64 / per / 1000.0
    );

    let (one, leaves) = (address(nodes / 2), "LEAVING,1".to_owned());
    world.publish(one, AppState::STATUS_WITH_PORT, leaves.clone());
    let heard = until(&mut world, |world| {
        let says = |gossiper: &Gossiper| {
            gossiper.peer(one).is_none_or(|peer| {
                peer.state.get(AppState::STATUS_WITH_PORT) == Some(leaves.as_str())
            })
        };
        world.nodes().all(|(_, gossiper)| says(gossiper))
    });
    println!("  all have heard that a node leaves after {}", said(heard));

    // a change is pushed to all, and each says its new version
    let version = uuid(1);
    for number in 1..=nodes {
        world.publish(address(number), AppState::SCHEMA, version.clone());
    }
    let agreed = until(&mut world, |world| {
        let says = |gossiper: &Gossiper| {
            let versions = gossiper.peers().map(|(_, peer)| peer.state.get(AppState::SCHEMA));
            versions.into_iter().all(|said| said == Some(version.as_str()))
        };
        world.nodes().all(|(_, gossiper)| says(gossiper))
    });
    println!("  each sees all others at a new schema after {}", said(agreed));
    [met, heard, agreed].iter().all(Option::is_some)
}

/// Milliseconds until something holds.
fn until(world: &mut World, holds: impl Fn(&World) -> bool) -> Option<u64> {
    let begin = world.second();
    for n in 0.. {
        if holds(world) {
            return Some(n * STEP);
        }
        if world.second() - begin > LIMIT {
            return None;
        }
        world.run(STEP);
    }
    None
}

fn said(millis: Option<u64>) -> String {
    match millis {
        Some(millis) => format!("{:.1} s", millis as f64 / 1000.0),
        None => format!("NEVER (within {LIMIT} s)"),
    }
}
