//! `cargo xtask campaign images`: power cuts in the middle of everything that changes files
//! (`sim::images`), and a node started on what each leaves. Recorded under `docs/campaigns/`.

use std::time::Instant;

use super::seeds::simulator;
use crate::machine::{self, Outcome};

/// Images of a campaign, where no number is given.
const IMAGES: u64 = 6000;

/// `campaign images [SEED [IMAGES]]`
pub fn campaign(words: &[&str]) -> Outcome {
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text} is no number"));
    let (seed, count) = match words {
        [] => (super::drawn()?, IMAGES),
        [seed] => (number(seed)?, IMAGES),
        [seed, count] => (number(seed)?, number(count)?),
        _ => return Err(super::USAGE.into()),
    };
    let begun = Instant::now();
    let mut images = simulator()?;
    let (good, text) =
        machine::output(images.args(["images", &seed.to_string(), &count.to_string()]))?;
    let (found, bugs) = machine::output(simulator()?.args(["planted", "images"]))?;
    let text = format!(
        "Seeds from {seed}; commit {}; {} s.\nAgain: `cargo xtask campaign images {seed} {count}`. Found: {}.\n\n\
         ```\n{text}```\n\nBugs planted, and how many images it took to find them:\n\n```\n{bugs}```\n",
        super::commit()?,
        begun.elapsed().as_secs(),
        if good { "nothing wrong" } else { "something wrong, as the text says" },
    );
    println!("recorded in {}", super::record(&format!("images-{seed}"), &text)?.display());
    if good && found { Ok(()) } else { Err("not all is as it should be".into()) }
}
