/* winograd_sides.h - one side of the squares of Winograd's convolutions of 3 x 3 taps, 4 x 4 outputs at once: the five
 * matrices, as C's vector extensions and OpenCL C read them alike.
 *
 * Before it: SIDE_FN(name), the head of a function of (const SIDE_VECTOR *x, SIDE_VECTOR *y), and SIDE_VECTOR.
 * y = matrix x: of 6 inputs, 6 sums that become 4 outputs, 3 taps, 4 gradients of outputs, 6 sums that become gradients
 * of taps. */

/* The points are 0, a, -a, b, -b and infinity, a and b half a power of two apart on either side of 1: powers neither
 * grow nor shrink much, and the error is half that of 1 and 2. */
#define POINT_A 0.70710678f
#define POINT_B 1.41421356f

SIDE_FN(input)
{
    const SIDE_VECTOR even_a = x[4] - 2.0f * x[2], odd_a = POINT_A * (x[3] - 2.0f * x[1]);
    const SIDE_VECTOR even_b = x[4] - 0.5f * x[2], odd_b = POINT_B * (x[3] - 0.5f * x[1]);

    y[0] = x[0] - 2.5f * x[2] + x[4];
    y[1] = even_a + odd_a;
    y[2] = even_a - odd_a;
    y[3] = even_b + odd_b;
    y[4] = even_b - odd_b;
    y[5] = x[1] - 2.5f * x[3] + x[5];
}

SIDE_FN(output)
{
    const SIDE_VECTOR even_a = x[1] + x[2], odd_a = POINT_A * (x[1] - x[2]);
    const SIDE_VECTOR even_b = x[3] + x[4], odd_b = POINT_B * (x[3] - x[4]);

    y[0] = x[0] + even_a + even_b;
    y[1] = odd_a + odd_b;
    y[2] = 0.5f * even_a + 2.0f * even_b;
    y[3] = 0.5f * odd_a + 2.0f * odd_b + x[5];
}

SIDE_FN(weights)
{
    const SIDE_VECTOR even_a = (x[0] + 0.5f * x[2]) * (-2.0f / 3.0f), odd_a = x[1] * (-2.0f / 3.0f * POINT_A);
    const SIDE_VECTOR even_b = (x[0] + 2.0f * x[2]) * (1.0f / 6.0f), odd_b = x[1] * (1.0f / 6.0f * POINT_B);

    y[0] = x[0];
    y[1] = even_a + odd_a;
    y[2] = even_a - odd_a;
    y[3] = even_b + odd_b;
    y[4] = even_b - odd_b;
    y[5] = x[2];
}

SIDE_FN(gradient)
{
    const SIDE_VECTOR even_a = x[0] + 0.5f * x[2], odd_a = POINT_A * (x[1] + 0.5f * x[3]);
    const SIDE_VECTOR even_b = x[0] + 2.0f * x[2], odd_b = POINT_B * (x[1] + 2.0f * x[3]);

    y[0] = x[0];
    y[1] = even_a + odd_a;
    y[2] = even_a - odd_a;
    y[3] = even_b + odd_b;
    y[4] = even_b - odd_b;
    y[5] = x[3];
}

SIDE_FN(weights_gradient)
{
    const SIDE_VECTOR even_a = (x[1] + x[2]) * (-2.0f / 3.0f), odd_a = (x[1] - x[2]) * (-2.0f / 3.0f * POINT_A);
    const SIDE_VECTOR even_b = (x[3] + x[4]) * (1.0f / 6.0f), odd_b = (x[3] - x[4]) * (1.0f / 6.0f * POINT_B);

    y[0] = x[0] + even_a + even_b;
    y[1] = odd_a + odd_b;
    y[2] = 0.5f * even_a + 2.0f * even_b + x[5];
}

#undef POINT_A
#undef POINT_B
