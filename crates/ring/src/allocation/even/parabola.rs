//! A sum of squares as a function of where in a range a token is.

/// `constant + slope * way + curve * way^2`, which opens upward.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parabola {
    constant: f64,
    slope: f64,
    curve: f64,
}

impl Parabola {
    /// `curve * way * (way - size)`: what is left of a range's square if it is split there.
    pub fn of_split(size: f64, curve: f64) -> Self {
        Self { constant: 0.0, slope: -curve * size, curve }
    }

    /// Adds by how much the square of `value` grows if the value grows by `step` and by `rate` with
    /// the way.
    pub fn add_change(&mut self, value: f64, step: f64, rate: f64) {
        let new = value + step;
        self.constant += new * new - value * value;
        self.slope += 2.0 * new * rate;
        self.curve += rate * rate;
    }

    pub fn add(&mut self, other: &Self) {
        self.constant += other.constant;
        self.slope += other.slope;
        self.curve += other.curve;
    }

    pub fn at(&self, way: f64) -> f64 {
        self.constant + (self.slope + self.curve * way) * way
    }

    /// Where it is lowest; at the start if it is level.
    pub fn lowest(&self) -> f64 {
        if self.curve > 0.0 { -self.slope / (2.0 * self.curve) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_sum_of_squares() {
        let mut parabola = Parabola::default();
        parabola.add_change(0.5, -0.125, 0.0);
        parabola.add_change(0.25, 0.5, -2.0);
        parabola.add(&Parabola::of_split(4.0, 3.0));
        let sum = |way: f64| {
            let squares = 0.375 * 0.375 - 0.25 + (0.75 - 2.0 * way).powi(2) - 0.0625;
            squares + 3.0 * way * (way - 4.0)
        };
        assert!([0.0, 0.5, 3.0].iter().all(|way| (parabola.at(*way) - sum(*way)).abs() < 1e-12));
        let lowest = parabola.lowest();
        assert!(parabola.at(lowest) < parabola.at(lowest + 0.01));
        assert!(parabola.at(lowest) < parabola.at(lowest - 0.01));
        assert_eq!(Parabola::default().lowest(), 0.0);
    }
}
